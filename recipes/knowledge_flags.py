"""Flags of a knowledge graph, and its reading."""

from absl import flags

from recipes.command_line import group, refuse_without, require_one
from tfnlp import knowledge

FLAGS = flags.FLAGS


@group("Knowledge")
def define_graph_flags():
    """Define the flags of the graph."""
    flags.DEFINE_string("wordnet", None, "Folder of WordNet's database files.")
    flags.DEFINE_string("conceptnet", None, "ConceptNet's assertions file, .csv or .csv.gz.")
    flags.DEFINE_string("language", "en", "Language of the words of ConceptNet, such as ko.")


def check_graph_flags():
    """Raise an InputError unless one graph is given."""
    require_one("wordnet", "conceptnet")
    refuse_without(["language"], "conceptnet")


def read_graph():
    """Read the `KnowledgeGraph` of the flags."""
    if FLAGS.wordnet:
        return knowledge.read_wordnet(FLAGS.wordnet)
    return knowledge.read_conceptnet(FLAGS.conceptnet, FLAGS.language)
