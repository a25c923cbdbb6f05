"""Word tags from the logits of first tokens, and entities from tags."""

import dataclasses
import re

import numpy as np

# BIO, IOBES or BILOU: outside, or a position in an entity and an optional type; the latter two
# also tag the end and a single word.
ENTITY_TAG = re.compile(r"O|[BIESLU](-.+)?")


@dataclasses.dataclass(frozen=True)
class Entity:
    """A named entity in a text.

    Args:
        text: the surface form in the text.
        label: its type, such as "location"; "_" if the tags have no type.
        start: index of its first character in the text.
        end: index after its last character.
        score: the mean probability of its words' tags.
    """

    text: str
    label: str
    start: int
    end: int
    score: float


@dataclasses.dataclass(frozen=True)
class TaggedText:
    """A text with a tag for each word.

    Args:
        text: a string.
        spans: (first character, end character) of each word.
        tags: the tag of each word.
        scores: the probability of each tag.
    """

    text: str
    spans: list
    tags: list
    scores: list

    @property
    def words(self):
        """The words, a list of strings."""
        return [self.text[start:end] for start, end in self.spans]

    @property
    def entities(self):
        """The entities that BIO, IOBES or BILOU tags mark, counted as in seqeval.

        A new entity begins at a B, S or U tag, after the end of another entity, and where the type
        changes.

        Returns:
            A list of `Entity`.
        """
        groups, kind = [], None  # the type of the open entity
        for i, tag in enumerate(self.tags):
            place, _, entity_type = tag.partition("-")
            if place == "O":
                kind = None
                continue
            if entity_type != kind or place in "BSU":
                groups.append((entity_type, []))
            groups[-1][1].append(i)
            kind = None if place in "ESLU" else entity_type
        return [self._entity(kind, words) for kind, words in groups]

    def _entity(self, kind, words):
        start, end = self.spans[words[0]][0], self.spans[words[-1]][1]
        score = float(np.mean([self.scores[i] for i in words]))
        return Entity(self.text[start:end], kind or "_", start, end, score)


def first_tokens(window):
    """Yield (word, position of its first token) of a window of `Tokenizer.encode_words`."""
    before = None
    for place, word in enumerate(window.words):
        if word is not None and word != before:
            yield word, place
        before = word


def best_tags(sentences, windows, logits, names):
    """Return the tag of each word.

    A word in two windows gets its tag from the window where it has more context on both sides.

    Args:
        sentences: lists of words.
        windows: from `Tokenizer.encode_words`.
        logits: (L, tags) for each window.
        names: the tag names in order of their ids. A word without a token gets the name of
            `outside`.

    Returns:
        A list of lists of names.
    """
    none = names[outside(names)]
    return [
        [none if row is None else names[int(row.argmax())] for row in rows]
        for rows in best_rows(sentences, windows, logits)
    ]


def outside(names):
    """Return the id of the tag outside entities: "O", or the first tag if there is no "O"."""
    return names.index("O") if "O" in names else 0


def best_rows(sentences, windows, logits):
    """Return the logits (tags,) of each word, or None without a token.

    A word in two windows is treated as in `best_tags`.
    """
    best = [[None] * len(words) for words in sentences]
    margins = [[-1] * len(words) for words in sentences]
    for window, rows in zip(windows, logits, strict=True):
        places = list(first_tokens(window))
        for k, (word, place) in enumerate(places):
            margin = min(k, len(places) - 1 - k)
            if margin > margins[window.example][word]:
                margins[window.example][word] = margin
                best[window.example][word] = rows[place]
    return best
