"""Trains a KagNet: endings chosen by their texts and by paths of a knowledge graph.

    python -m recipes.train_kagnet --chooser_dir=runs/endings/best --train=codah/train.tsv \\
        --dev=codah/dev.tsv --graph=/usr/share/wordnet --format=wordnet \\
        --output_dir=runs/kagnet

The chooser is one of `recipes.finetune_chooser`, whose vectors of texts stay as they are; the
files are those of that recipe. `--max_edges=0` trains a score of the vectors alone, to compare
with. `--picture` draws the paths that the KagNet looks at in a question of the dev file.
"""

import pathlib

from absl import flags, logging

from recipes.flags import data_flags, dataclass_flags, knowledge_flags, task_flags
from recipes.shell import entry_point
from recipes.shell.command_line import check_output, refuse_beside, refuse_without
from tfnlp import checkpoints, knowledge, plots, training
from tfnlp.configs import KagNetConfig
from tfnlp.tasks.kinds import CHOOSER, named_head
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_absent, write_json

FLAGS = flags.FLAGS
flags.DEFINE_string("chooser_dir", None, "Folder of a chooser from finetune_chooser.")
task_flags.define_chooser_flags()
data_flags.define_split_flags()
knowledge_flags.define_graph_flags()
knowledge_flags.define_mention_flags(
    "; random ones, which tell them apart and no more, if not given."
)
dataclass_flags.define(KagNetConfig)
flags.DEFINE_string("output_dir", None, "Folder of the model and its figures.")
flags.DEFINE_string("picture", None, "Picture (.png) of the paths of a question of --dev.")
flags.DEFINE_integer("picture_question", 0, "Number of that question, from 0.", 0)
flags.mark_flags_as_required(["chooser_dir", "graph", "output_dir"])


def check_flags(dev):
    """Raise an InputError for flags that do not fit, or a folder that holds no chooser."""
    refuse_without(["picture_question"], "picture")
    if FLAGS.entity_vectors:
        refuse_beside(["concept_dim"], "entity_vectors, which have their own")
    if FLAGS.picture:
        check_output("picture", ".png")
        if FLAGS.picture_question >= len(dev):
            raise InputError(
                f"picture_question={FLAGS.picture_question} must be below the {len(dev)} of "
                f"dev={FLAGS.dev}."
            )
    head = checkpoints.read_head(FLAGS.chooser_dir)
    if head != CHOOSER.head:
        raise InputError(
            f"chooser_dir={FLAGS.chooser_dir} holds {named_head(head)}; give the "
            "folder of a chooser, from finetune_chooser."
        )


def draw_question(model, reader, dev):
    """Draw the paths of the question of --picture_question."""
    prompt, endings = (x[FLAGS.picture_question] for x in (dev.prompts, dev.endings))
    seen = training.look_at_paths(model, reader, prompt, endings)
    if plots.plot_paths(prompt, seen, FLAGS.picture):
        logging.info("Wrote %s.", FLAGS.picture)


def main():
    config = dataclass_flags.read(KagNetConfig)
    splits = task_flags.read_choices()
    check_flags(splits["dev"])
    folder = pathlib.Path(FLAGS.output_dir)
    model_path, figures_path = folder / "kagnet.keras", folder / "figures.json"
    if not model_path.exists():
        check_absent(figures_path)  # of another run
    vectors, graph = knowledge_flags.read_vectors(), knowledge_flags.read_graph()
    schema_graphs = knowledge_flags.make_schema_graphs(graph, config)
    table = knowledge.concept_vectors(graph, vectors, config.concept_dim, config.seed)
    entry_point.load_tensorflow()
    reader = training.ChoiceReader(FLAGS.chooser_dir, schema_graphs)
    inputs, figures = {}, {}
    for name, choices in splits.items():
        graphs = reader.find_graphs(choices)
        facts = training.path_figures(graphs)
        figures |= {f"{name}_{fact}": value for fact, value in facts.items()}
        inputs[name] = reader.inputs(choices, graphs)
    model, scores = training.train_kagnet(
        config,
        inputs,
        {name: choices.labels for name, choices in splits.items()},
        table,
        len(graph.relations),
    )
    figures |= scores
    folder.mkdir(parents=True, exist_ok=True)
    model.save(model_path)
    write_json(figures_path, figures)
    for name, value in figures.items():
        logging.info("%s: %s", name, f"{value:.4f}" if isinstance(value, float) else f"{value:,}")
    if FLAGS.picture:
        draw_question(model, reader, splits["dev"])


if __name__ == "__main__":
    entry_point.run(main)
