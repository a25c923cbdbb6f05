"""KagNet beside the chooser whose vectors of texts it takes, and beside the vectors alone.

    python -m benchmarks.kagnet --choosers=runs/plain0/best,runs/plain1/best \\
        --train=codah/train.tsv --dev=codah/dev.tsv --test=codah/test.tsv \\
        --graph=/usr/share/wordnet --format=wordnet --entity_vectors=vectors.bin

The seed of all that is trained on a chooser is its place in the list, after --first_seed. Prints
the accuracies of the chooser, of a score of its vectors trained anew, and of a KagNet with the
concept vectors of --entity_vectors, or with random ones.
"""

import dataclasses

import numpy as np
from absl import app, flags

from recipes.flags import knowledge_flags
from tfnlp.configs import KagNetConfig
from tfnlp.knowledge import concept_vectors
from tfnlp.tasks import read_choices
from tfnlp.training import ChoiceReader, path_figures, train_kagnet

FLAGS = flags.FLAGS
SPLITS = ("train", "dev", "test")
flags.DEFINE_list("choosers", None, "Folders of choosers from finetune_chooser.")
knowledge_flags.define_graph_flags()
knowledge_flags.define_mention_flags("; random ones if not given.")
for name in SPLITS:
    flags.DEFINE_string(name, None, "As in train_kagnet.")
flags.DEFINE_integer("epochs", KagNetConfig.epochs, "Epochs of a KagNet.")
flags.DEFINE_integer("first_seed", 0, "Seed of what is trained on the first chooser.")
flags.mark_flags_as_required(["choosers", *SPLITS, "graph"])


def show(seed, variant, accuracies):
    """Print the accuracy of each split."""
    shown = " ".join(f"{name} {accuracy:.4f}" for name, accuracy in accuracies.items())
    print(f"seed {seed}, {variant}: {shown}", flush=True)


def chooser_accuracy(reader, vectors, labels):
    """Return the accuracy of a chooser, whose head scores its vectors of texts."""
    scores = np.asarray(reader.chooser.get_layer("classifier")(vectors))[..., 0]
    return float(np.mean(scores.argmax(-1) == np.array(labels)))


def main(_):
    config = KagNetConfig(epochs=FLAGS.epochs)
    alone = dataclasses.replace(config, max_edges=0, max_pairs=1, max_paths=1)
    graph = knowledge_flags.read_graph()
    table = concept_vectors(graph, knowledge_flags.read_vectors())
    splits = {name: read_choices(FLAGS[name].value) for name in SPLITS}
    labels = {name: choices.labels for name, choices in splits.items()}
    arrays = {}
    for seed, folder in enumerate(FLAGS.choosers, FLAGS.first_seed):
        readers = {
            kind: ChoiceReader(folder, knowledge_flags.make_schema_graphs(graph, kind))
            for kind in (config, alone)
        }
        for kind, reader in () if arrays else readers.items():
            for name, choices in splits.items():
                graphs = reader.find_graphs(choices)
                arrays[kind, name] = reader.graph_arrays(choices, graphs)
                print(name, path_figures(graphs), flush=True)
        reader = readers[config]
        texts = {name: reader.text_vectors(choices) for name, choices in splits.items()}
        plain = {name: chooser_accuracy(reader, texts[name], labels[name]) for name in SPLITS}
        show(seed, "chooser", plain)
        for variant, kind in (("vectors of texts alone", alone), ("KagNet", config)):
            inputs = {name: {"text": texts[name]} | arrays[kind, name] for name in SPLITS}
            settings = dataclasses.replace(kind, seed=seed)
            _, figures = train_kagnet(settings, inputs, labels, table, len(graph.relations))
            show(seed, variant, {name: figures[f"{name}_accuracy"] for name in SPLITS[1:]})


if __name__ == "__main__":
    app.run(main)
