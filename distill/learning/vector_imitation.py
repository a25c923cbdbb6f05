"""Learning a teacher's vectors of texts, which need no labels."""

import dataclasses
import itertools
import random

from tfnlp.objectives import read_texts
from tfnlp.tasks import SentenceVectors, TextGroups, read_text_groups
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class PlainTexts:
    """Texts without labels.

    Args:
        texts: a list of strings, which the student reads.
        originals: the text that the teacher reads in place of each, a list; None for the same.
    """

    texts: list
    originals: list | None = None

    def __len__(self):
        return len(self.texts)


# The fewest and the most pairs that `hold_out_pairs` leaves out.
FEWEST, HELD_OUT = 10, 500


class VectorImitation(SentenceVectors):
    """The task of `PlainTexts` to learn from and `TextGroups` to score, as `SentenceVectors`."""

    labelled = False

    def encode(self, tokenizer, examples, max_length):
        if isinstance(examples, PlainTexts):
            return tokenizer.encode(examples.texts, max_length=max_length), None
        return super().encode(tokenizer, examples, max_length)

    def with_prompts(self, examples):
        """Return `PlainTexts` that begin with each of the prompts."""
        prompts = [*dict.fromkeys(self.prompts)]

        def begun(texts):
            return texts and [prompt + text for prompt in prompts for text in texts]

        return PlainTexts(begun(examples.texts), begun(examples.originals))


def read_unlabelled(paths, columns):
    """Return the distinct non-empty texts of files, in order, as `PlainTexts`.

    Args:
        paths: TSV, CSV, JSON, JSON Lines or Parquet, else a text on each line; also with .gz.
        columns: of the texts, where there are columns.

    Raises:
        InputError: as in `read_texts`.
    """
    texts = (read_texts([path], column) for path in paths for column in columns)
    return PlainTexts([*dict.fromkeys(itertools.chain.from_iterable(texts))])


def read_translations(paths, columns):
    """Return texts and their translations as `PlainTexts`, whose originals are the texts.

    Reimers & Gurevych 2020, 'Making Monolingual Sentence Embeddings Multilingual', eq. 1: a
    student's vectors of a text and of its translation are to be the teacher's vector of the text.

    Args:
        paths: of tables, in a format of `read_columns`.
        columns: of the text, which the teacher reads, and of its translations.

    Raises:
        InputError: as in `read_text_groups`.
    """
    if len({*columns}) < max(2, len(columns)):
        raise InputError(
            f"translations need 2 columns or more, each once, not {','.join(columns)}: of a text "
            "and of its translations."
        )
    pairs = {}
    for path in paths:
        for texts in read_text_groups(path, columns).texts:
            pairs |= dict.fromkeys((text.strip(), texts[0].strip()) for text in texts)
    return PlainTexts(*map(list, zip(*pairs, strict=True)))


def hold_out_pairs(examples, embed, prompts=("", "")):
    """Leave pairs of texts out, to measure how alike student and teacher order pairs.

    Args:
        examples: `PlainTexts`, of which a tenth is left out, at most 500 pairs.
        embed: function of a list of texts to the teacher's vectors (texts, D), of length 1.
        prompts: the beginnings of first and of second texts.

    Returns:
        The other `PlainTexts`, and `TextGroups` with the teacher's cosines; of translations, the
        teacher's are those of the originals.

    Raises:
        InputError: for fewer than 200 texts, whose few pairs would select an epoch by chance.
    """
    versions = {}  # of each original
    originals = examples.originals or examples.texts
    for text, original in zip(examples.texts, originals, strict=True):
        versions.setdefault(original, []).append(text)
    pairs = min(HELD_OUT, len(versions) // 20)
    if pairs < FEWEST:
        raise InputError(
            f"{len(versions)} texts of `train` are too few to leave pairs out of; give `dev`, or "
            f"{20 * FEWEST} texts or more."
        )
    chosen = random.Random(0).sample([*versions], 2 * pairs)
    first, second = chosen[:pairs], chosen[pairs:]
    query, document = prompts
    vectors = embed([query + text for text in first] + [document + text for text in second])
    cosines = (vectors[:pairs] * vectors[pairs:]).sum(-1)
    groups = [(versions[a][-1], versions[b][-1]) for a, b in zip(first, second, strict=True)]
    # Another original may have the same translation.
    left_out = {*chosen, *(text for original in chosen for text in versions[original])}
    rows = zip(examples.texts, originals, strict=True)
    kept = [row for row in rows if left_out.isdisjoint(row)]
    texts, originals = map(list, zip(*kept, strict=True))
    train = PlainTexts(texts, originals if examples.originals else None)
    return train, TextGroups(groups, cosines.tolist())
