"""Flags of the entities that a BERT reads beside the text, and the model that reads them."""

from absl import flags

from recipes.command_line import group, refuse_without
from tfnlp import baselines, knowledge, models

FLAGS = flags.FLAGS


@group("Entities")
def define_flags():
    """Define the flags of entities beside the text."""
    flags.DEFINE_string(
        "entity_vectors",
        None,
        "File of vectors of WordNet's entities, which the last blocks of a BERT then read beside "
        "the text (ERNIE). A model that reads entities already needs none.",
    )
    flags.DEFINE_string(
        "wordnet", None, "Folder of WordNet's database files, whose lemmas name entities in texts."
    )
    flags.DEFINE_integer("knowledge_layers", 2, "The last blocks, which read entities.", 1)


def read_entities():
    """Return the dictionary and the vectors of the flags, as `named_vectors`; None without.

    Raises:
        InputError: if flags are missing, or as `WordVectors.load`, `read_wordnet` and
            `named_vectors`.
    """
    refuse_without(["entity_vectors"], "wordnet")
    refuse_without(["wordnet", "knowledge_layers"], "entity_vectors")
    if not FLAGS.entity_vectors:
        return None
    vectors = baselines.WordVectors.load(FLAGS.entity_vectors)
    return knowledge.named_vectors(knowledge.read_wordnet(FLAGS.wordnet), vectors)


def find_entities(tokenizer, entities):
    """Return a tokenizer that finds entities; the same if `entities`, of the flags, is None."""
    return tokenizer if entities is None else knowledge.EntityTokenizer.of(tokenizer, entities[0])


def add_entities(model, entities):
    """Return a model that reads entities; the same if `entities`, of the flags, is None."""
    if entities is None:
        return model
    return models.with_entities(model, entities[1], FLAGS.knowledge_layers)
