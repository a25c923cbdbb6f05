"""Scores vectors of a graph on other triples.

    python -m recipes.evaluate_graph_vectors --vectors_dir=runs/graph --test=test.tsv \\
        --known=runs/graph/train.tsv,runs/graph/dev.tsv

The candidates for the head and for the tail of a triple are all entities but those that make
another triple of --test or --known.
"""

import pathlib

import numpy as np
from absl import flags

from recipes.shell import entry_point
from tfnlp import knowledge
from tfnlp.baselines import WordVectors

FLAGS = flags.FLAGS
flags.DEFINE_string("vectors_dir", None, "Folder that train_graph_vectors wrote.")
flags.DEFINE_string("test", None, "File of triples.")
flags.DEFINE_list("known", [], "Files of triples whose entities are no candidates.")
flags.mark_flags_as_required(["vectors_dir", "test"])


def main():
    folder = pathlib.Path(FLAGS.vectors_dir)
    names = [WordVectors.load(folder / f"{name}.bin").words for name in ("entities", "relations")]
    test, *known = (knowledge.number_triples(path, *names) for path in (FLAGS.test, *FLAGS.known))
    entry_point.load_tensorflow()
    model, *_ = knowledge.load_graph_vectors(folder)
    scores = knowledge.score_links(model, test, np.concatenate([test, *known]))
    print(", ".join(f"{name} {score:.4f}" for name, score in scores.items()))


if __name__ == "__main__":
    entry_point.run(main)
