"""Flags of a knowledge graph, its reading, and its entities beside a text."""

import pathlib

from absl import flags

from recipes.shell.command_line import group, hide, no_effect, refuse_without
from tfnlp import baselines, knowledge, models
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
FORMATS = ("triples", "wordnet", "conceptnet")


@group("Knowledge")
def define_graph_flags():
    """Define the flags of a graph."""
    flags.DEFINE_string(
        "graph", None, "Folder of WordNet's files, ConceptNet's assertions or a file of triples."
    )
    flags.DEFINE_enum("format", "triples", FORMATS, "Format of --graph.")
    flags.DEFINE_string("language", "en", "Language of ConceptNet's words.")


@group("Knowledge")
def define_mention_flags(use_of_vectors):
    """Define the flags of entities that texts mention.

    Args:
        use_of_vectors: what --entity_vectors are for, and what there is without them.
    """
    flags.DEFINE_string(
        "entity_vectors", None, f"File of vectors of the graph's entities{use_of_vectors}"
    )
    flags.DEFINE_bool("morphemes", False, "Look Korean texts up by morphemes (kiwipiepy).")


@group("Knowledge")
def define_entity_flags():
    """Define the flags of entities that a BERT reads beside the text."""
    define_graph_flags()
    define_mention_flags(
        ", which the last blocks of a BERT then read beside the text (ERNIE). A model that reads "
        "entities already needs none."
    )
    flags.DEFINE_integer("knowledge_layers", 2, "The last blocks, which read entities.", 1)
    hide("graph", "format", "language")
    hide("entity_vectors", "morphemes", "knowledge_layers")


def check_graph_flags():
    """Raise an InputError for a language or a folder that --format does not have."""
    if FLAGS.format != "conceptnet" and FLAGS["language"].present:
        raise no_effect("language", f"with --format={FLAGS.format}")
    if FLAGS.format != "wordnet" and pathlib.Path(FLAGS.graph).is_dir():
        raise InputError(f"--graph={FLAGS.graph} is a folder; give --format=wordnet, or a file.")


def read_graph():
    """Read the `KnowledgeGraph` of the flags.

    Raises:
        InputError: as `check_graph_flags` and the graph's reader.
    """
    check_graph_flags()
    if FLAGS.format == "wordnet":
        return knowledge.read_wordnet(FLAGS.graph)
    if FLAGS.format == "conceptnet":
        return knowledge.read_conceptnet(FLAGS.graph, FLAGS.language)
    return knowledge.read_triples(FLAGS.graph)


def read_vectors():
    """Return the `WordVectors` of --entity_vectors, or None."""
    path = FLAGS.entity_vectors
    return baselines.WordVectors.load(path) if path else None


def make_schema_graphs(graph, config):
    """Return the `SchemaGraphs` of a graph, of the sizes of a `KagNetConfig`."""
    return knowledge.SchemaGraphs(
        graph,
        config.max_edges,
        config.max_pairs,
        config.max_paths,
        split=baselines.morphemes if FLAGS.morphemes else knowledge.split_words,
    )


def read_entities():
    """Return the dictionary and the vectors of the flags, as `named_vectors`; None without.

    Raises:
        InputError: if flags are missing, or as `read_graph`, `WordVectors.load` and
            `named_vectors`.
    """
    refuse_without(["entity_vectors", "format", "language"], "graph")
    refuse_without(["graph", "morphemes", "knowledge_layers"], "entity_vectors")
    vectors = read_vectors()
    return None if vectors is None else knowledge.named_vectors(read_graph(), vectors)


def find_entities(tokenizer, entities):
    """Return a tokenizer that finds entities; the same if `entities`, of the flags, is None."""
    if entities is None:
        return tokenizer
    return knowledge.EntityTokenizer.of(tokenizer, entities[0], FLAGS.morphemes)


def add_entities(model, entities):
    """Return a model that reads entities; the same if `entities`, of the flags, is None."""
    if entities is None:
        return model
    return models.with_entities(model, entities[1], FLAGS.knowledge_layers)
