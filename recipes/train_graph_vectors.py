"""Trains vectors of the entities and relations of a graph: TransE, DistMult or RotatE.

    python -m recipes.train_graph_vectors --graph=/usr/share/wordnet --format=wordnet \\
        --relations=hypernym,part_meronym --max_entities=12000 --output_dir=runs/graph
    python -m recipes.train_graph_vectors --graph=assertions.csv.gz --format=conceptnet \\
        --language=ko --method=rotate --output_dir=runs/korean_graph
    python -m recipes.train_graph_vectors --graph=train.tsv --dev=dev.tsv --output_dir=runs/mine

A file of triples has a head, a relation and a tail on a line, with tabs between. The scores are
those of the dev file, or of triples held out at random. OUTPUT_DIR/entities.bin and relations.bin
are in word2vec's binary format, which gensim opens; train.tsv and dev.tsv are the triples. A
finished folder is trained again by --overwrite alone.
"""

import dataclasses

import numpy as np
from absl import flags, logging

from recipes.flags import dataclass_flags, knowledge_flags, training_flags
from recipes.shell import entry_point
from recipes.shell.command_line import no_effect, refuse_beside
from tfnlp import knowledge
from tfnlp.utils.files import read_json, write_json

FLAGS = flags.FLAGS
FILES = ("entities.bin", "relations.bin", "config.json", "train.tsv", "dev.tsv")
knowledge_flags.define_graph_flags()
flags.DEFINE_list("relations", [], "Relations to train on; all by default.")
flags.DEFINE_integer("max_entities", None, "Entities at most, those of the most triples.", 2)
flags.DEFINE_string("dev", None, "File of triples to score on.")
flags.DEFINE_float("held_out", 0.05, "Share of the triples to score on without --dev.", 0, 1)
flags.DEFINE_integer("split_seed", 0, "Seed of the draw of --held_out.", 0)
flags.DEFINE_string("output_dir", None, "Folder to write the vectors into.")
flags.DEFINE_bool("overwrite", False, "Delete the vectors in the folder and train anew.")
flags.DEFINE_enum("method", "transe", list(knowledge.METHODS), "Method.")
dataclass_flags.define_choice(knowledge.METHODS)
flags.mark_flags_as_required(["graph", "output_dir"])


def main():
    settings = dataclass_flags.read(knowledge.METHODS[FLAGS.method])
    where = f"with --method={FLAGS.method}"
    dataclass_flags.refuse_others(settings, knowledge.METHODS.values(), where)
    if settings.loss == "margin" and FLAGS["temperature"].present:
        raise no_effect("temperature", "with --loss=margin")
    if FLAGS.dev:
        refuse_beside(["held_out", "split_seed"], "--dev")
    graph = knowledge.select_triples(
        knowledge_flags.read_graph(), FLAGS.relations, FLAGS.max_entities
    )
    if FLAGS.dev:
        train = graph.triples
        dev = knowledge.number_triples(FLAGS.dev, graph.entities, graph.relations)
    else:
        train, dev = knowledge.hold_out(graph, FLAGS.held_out, FLAGS.split_seed)
    counts = len(graph.entities), len(graph.relations), len(train), len(dev)
    logging.info("%d entities, %d relations; %d triples, and %d to score on.", *counts)
    entry_point.load_tensorflow()
    decisive = training_flags.decisive_flags() | dataclasses.asdict(settings)
    run = training_flags.run_folder(decisive, files=FILES)
    figures = run.path / "figures.json"
    if figures.exists() and not FLAGS.overwrite:
        logging.info("%s is complete; nothing to train.", run.path)
        scores = read_json(figures)
    else:
        with run.alone():
            run.start()
            scores = train_vectors(run.path, graph, settings, train, dev)
            write_json(figures, scores)
    print(", ".join(f"{name} {score:.4f}" for name, score in scores.items()))


def train_vectors(folder, graph, settings, train, dev):
    """Train vectors and write them and the triples to a folder; return the scores on dev."""
    model = knowledge.GraphVectors(len(graph.entities), len(graph.relations), settings)
    model.train(train)
    model.save_vectors(folder, graph)
    for name, triples in (("train", train), ("dev", dev)):
        knowledge.write_triples(folder / f"{name}.tsv", graph, triples)
    return knowledge.score_links(model, dev, np.concatenate([train, dev]))


if __name__ == "__main__":
    entry_point.run(main)
