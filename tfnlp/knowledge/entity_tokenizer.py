"""WordPiece tokenizer that finds the entities of a text."""

import dataclasses
import functools
import pathlib
import unicodedata
from typing import ClassVar

import numpy as np

from tfnlp.baselines import morphemes
from tfnlp.knowledge.graph import KnowledgeGraph
from tfnlp.knowledge.mentions import find_mentions
from tfnlp.text import load_tokenizer
from tfnlp.text.batching.encoding import FurtherInput
from tfnlp.text.tokenizers.tokenizer_files import read_family, read_token_lines
from tfnlp.text.tokenizers.wordpiece import WordPieceTokenizer
from tfnlp.utils.errors import InputError

FILE = "entities.tsv"


class EntityTokenizer(WordPieceTokenizer):
    """`WordPieceTokenizer` whose encodings have `entity_ids` too.

    A mention is found by a dictionary of lemmas, as `find_mentions` does; its entity is at the
    mention's first piece, as in Zhang et al. 2019, section 3.1, and 0 stands elsewhere.

    Args:
        vocabulary, options: as in `WordPieceTokenizer`.
        entities: {lemma: id of its entity, from 1 on}.
        by_morphemes: whether mentions are Korean morphemes, of which each stands at the first
            piece of its word, and the first one where there are several.
    """

    family = "knowledge_bert"
    fields: ClassVar = WordPieceTokenizer.fields | {"by_morphemes": "by_morphemes"}

    def __init__(self, vocabulary, entities, by_morphemes=False, **options):
        super().__init__(vocabulary, **options)
        self.by_morphemes = by_morphemes
        self.entities = entities
        lemmas = {lemma: [entity] for lemma, entity in entities.items()}
        self._dictionary = KnowledgeGraph([], [], np.zeros((0, 3), "int32"), lemmas)

    @classmethod
    def of(cls, tokenizer, entities, by_morphemes=False):
        """Build the tokenizer of a `WordPieceTokenizer` and a dictionary of entities.

        Raises:
            InputError: for a tokenizer of another kind.
        """
        if not isinstance(tokenizer, WordPieceTokenizer):
            raise InputError(
                f"A {type(tokenizer).__name__} finds no entities; give a model with WordPiece."
            )
        options = {name: getattr(tokenizer, name) for name in WordPieceTokenizer.fields.values()}
        with_entities = cls(tokenizer.vocabulary, entities, by_morphemes, **options)
        for token in tokenizer.added_tokens:
            with_entities.add_token(token)
        return with_entities

    @classmethod
    def _read(cls, folder, family):
        arguments, settings = super()._read(folder, family)
        rows = (line.split("\t") for line in read_token_lines(folder / FILE))
        try:
            entities = {lemma: int(entity) for lemma, entity in rows}
        except ValueError:
            raise InputError(
                f"{folder / FILE} must have a lemma, a tab and a number on each line; take the "
                "folder as it was saved."
            ) from None
        return arguments | {"entities": entities}, settings

    def files(self):
        """Return the files of a WordPiece tokenizer, and that of the entities."""
        lines = "".join(f"{lemma}\t{entity}\n" for lemma, entity in self.entities.items())
        return super().files() | {FILE: lines}

    def encode(self, *args, **kwargs):
        return self._with_entities(super().encode(*args, **kwargs))

    def encode_windows(self, *args, **kwargs):
        return self._with_entities(super().encode_windows(*args, **kwargs))

    def _encode_as_windows(self, *args, **kwargs):
        return self._with_entities(super()._encode_as_windows(*args, **kwargs))

    def _with_entities(self, encodings):
        entity_ids = FurtherInput(self.entity_ids(encodings.token_ids))
        return dataclasses.replace(encodings, further={"entity_ids": entity_ids})

    def entity_ids(self, token_ids):
        """Return the entity of each token, 0 for none, in the shape of the ids: int32.

        Special tokens, which are in no lemma, keep texts apart.
        """
        words, places = [], []
        for place, i in enumerate(np.ravel(token_ids)):
            piece = self.vocabulary[i]
            if piece.startswith("##") and words:
                words[-1] += piece[2:]
            else:
                words.append(piece)
                places.append(place)
        # A tokenizer that strips accents has decomposed Hangul.
        words = [unicodedata.normalize("NFC", word) for word in words]
        if self.by_morphemes:
            parts = [_morphemes(word) for word in words]
            words = [part for word in parts for part in word]
            places = np.repeat(places, [len(word) for word in parts])
        entity_ids = np.zeros(np.size(token_ids), "int32")
        for start, _, entity in reversed(find_mentions(words, self._dictionary)):
            entity_ids[places[start]] = entity
        return entity_ids.reshape(np.shape(token_ids))


@functools.lru_cache(100_000)
def _morphemes(word):
    """Return the morphemes of a word; special tokens and punctuation stay as they are."""
    return morphemes(word) if word.isalpha() else [word]


def load_entity_tokenizer(folder):
    """Load the tokenizer of a checkpoint folder as `load_tokenizer` does, or one with entities.

    Raises:
        InputError: as `load_tokenizer` does, and for a broken file of entities.
    """
    if pathlib.Path(folder).is_dir() and read_family(folder) == EntityTokenizer.family:
        return EntityTokenizer.from_folder(folder)
    return load_tokenizer(folder)


def named_vectors(graph, vectors):
    """Return the entities that a text can name and that have a vector.

    Args:
        graph: a `KnowledgeGraph`.
        vectors: `tfnlp.baselines.WordVectors` of the graph's entities, by their names.

    Returns:
        {lemma: id}, of each lemma's first sense, as `EntityTokenizer` takes it, and the vectors
        (ids, E), of which row i is of the id i + 1.

    Raises:
        InputError: if no entity has a vector.
    """
    ids, lemmas = {}, {}
    for lemma, senses in graph.lemmas.items():
        name = graph.entities[senses[0]]
        if name in vectors:
            lemmas[lemma] = ids.setdefault(name, len(ids) + 1)
    if not lemmas:
        raise graph.without_vectors(vectors)
    return lemmas, np.stack([vectors[name] for name in ids])
