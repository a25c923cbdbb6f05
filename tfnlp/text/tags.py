"""Tags of words from the logits of their first tokens, and the entities that tags name."""

import dataclasses
import re

import numpy as np

# BIO, IOBES or BILOU: outside, or a place in an entity and its kind, which may be missing.
ENTITY_TAG = re.compile(r"O|[BIESLU](-.+)?")


@dataclasses.dataclass(frozen=True)
class Entity:
    """An entity in a text.

    Args:
        text: as it stands there.
        label: its kind, such as "location"; "_" where the tags name none.
        start: its first character in the text.
        end: the character after its last.
        score: the mean probability of its words' tags.
    """

    text: str
    label: str
    start: int
    end: int
    score: float


@dataclasses.dataclass(frozen=True)
class TaggedText:
    """A text whose words have tags.

    Args:
        text: a string.
        spans: the first character of each word and the one after its last.
        tags: of each word.
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
        """The entities that tags of BIO, IOBES or BILOU name, as seqeval counts them.

        An entity begins where its first tag says so, after another entity's end, and where the
        kind changes.

        Returns:
            A list of `Entity`.
        """
        groups, kind = [], None  # of the entity that is open
        for i, tag in enumerate(self.tags):
            place, _, here = tag.partition("-")
            if place == "O":
                kind = None
                continue
            if here != kind or place in "BSU":
                groups.append((here, []))
            groups[-1][1].append(i)
            kind = None if place in "ESLU" else here
        return [self._entity(kind, words) for kind, words in groups]

    def _entity(self, kind, words):
        start, end = self.spans[words[0]][0], self.spans[words[-1]][1]
        score = float(np.mean([self.scores[i] for i in words]))
        return Entity(self.text[start:end], kind or "_", start, end, score)


def first_tokens(window):
    """Yields (word, place of its first token) of a window of `Tokenizer.encode_words`."""
    before = None
    for place, word in enumerate(window.words):
        if word is not None and word != before:
            yield word, place
        before = word


def best_tags(sentences, windows, logits, names):
    """The tag of each word.

    A word in two windows gets the tag of the one where it has more words around it.

    Args:
        sentences: lists of words.
        windows: from `Tokenizer.encode_words`.
        logits: for each window (L, tags).
        names: of the tags, in order of their ids; "O", or else the first, where a word has no
            token.

    Returns:
        A list of lists of names.
    """
    none = names[outside(names)]
    return [
        [none if row is None else names[int(row.argmax())] for row in rows]
        for rows in best_rows(sentences, windows, logits)
    ]


def outside(names):
    """The id of the tag of what is in no entity: "O", or the first where there is none."""
    return names.index("O") if "O" in names else 0


def best_rows(sentences, windows, logits):
    """The logits (tags,) of each word, or None where it has no token; else as `best_tags`."""
    found = [[None] * len(words) for words in sentences]
    margins = [[-1] * len(words) for words in sentences]
    for window, rows in zip(windows, logits, strict=True):
        places = list(first_tokens(window))
        for k, (word, place) in enumerate(places):
            margin = min(k, len(places) - 1 - k)
            if margin > margins[window.example][word]:
                margins[window.example][word] = margin
                found[window.example][word] = rows[place]
    return found
