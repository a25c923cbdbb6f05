"""Flags of a knowledge graph, and its reading."""

import pathlib

from absl import flags

from recipes.command_line import group, no_effect
from tfnlp import knowledge
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
FORMATS = ("triples", "wordnet", "conceptnet")


@group("Knowledge")
def define_graph_flags():
    """Define the flags of a graph; `check_graph_flags` checks them."""
    flags.DEFINE_string("graph", None, "Folder of WordNet's files, or a file.")
    flags.DEFINE_enum("format", "triples", FORMATS, "Format of --graph.")
    flags.DEFINE_string("language", "en", "Language of ConceptNet's words.")
    flags.mark_flag_as_required("graph")


def check_graph_flags():
    """Raise an InputError for a language or a folder that --format does not have."""
    if FLAGS.format != "conceptnet" and FLAGS["language"].present:
        raise no_effect("language", f"with --format={FLAGS.format}")
    if FLAGS.format != "wordnet" and pathlib.Path(FLAGS.graph).is_dir():
        raise InputError(f"--graph={FLAGS.graph} is a folder; give --format=wordnet, or a file.")


def read_graph():
    """Read the `KnowledgeGraph` of the flags."""
    if FLAGS.format == "wordnet":
        return knowledge.read_wordnet(FLAGS.graph)
    if FLAGS.format == "conceptnet":
        return knowledge.read_conceptnet(FLAGS.graph, FLAGS.language)
    return knowledge.read_triples(FLAGS.graph)
