"""Words of a corpus as numbers, with their counts."""

import array
import collections
import dataclasses
import hashlib
import re
import tempfile

import numpy as np

from tfnlp.baselines.korean_morphemes import morphemes
from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.progress import progress_bar

SPLITTERS = {
    "words": lambda text: re.findall(r"\w+", text.lower()),
    "spaces": str.split,
    "morphemes": morphemes,
    "characters": list,
}
BLOCK = 1_000_000


@dataclasses.dataclass
class WordCorpus:
    """A corpus of word ids, from the commonest word on.

    Args:
        words: the vocabulary.
        counts: (words,), how often each occurs.
        ids: (n,) int32, the words of all texts; `len(words)` ends each text. It may lie on disk.
    """

    words: list
    counts: np.ndarray
    ids: np.ndarray

    @property
    def end(self):
        """The id that ends a text."""
        return len(self.words)

    def fingerprint(self):
        """Return the SHA-256 of the words and their order."""
        digest = hashlib.sha256("\n".join(self.words).encode())
        for start in range(0, len(self.ids), BLOCK):
            digest.update(self.ids[start : start + BLOCK].tobytes())
        return digest.hexdigest()


def read_word_corpus(texts, unit="words", min_count=5):
    """Count the words of texts and number them, with the ids in a temporary file.

    Args:
        texts: an iterable of strings, read once.
        unit: "words" (runs of letters and digits, in lower case), "spaces" (as they are between
            spaces), "morphemes" (Korean), "characters", or a function from a text to its words.
        min_count: how often a word of the vocabulary occurs at least.

    Raises:
        InputError: for an unknown unit, or if no text has two words that occur `min_count` times.
    """
    if not callable(unit) and unit not in SPLITTERS:
        raise unknown_name("unit", unit, SPLITTERS)
    split = unit if callable(unit) else SPLITTERS[unit]
    first_ids = collections.defaultdict(lambda: len(first_ids))
    counts = array.array("q")
    with tempfile.TemporaryFile() as file:
        for text in progress_bar(texts, desc="words", unit="text"):
            ids = array.array("i", [first_ids[word] for word in split(text)])
            counts.extend([0] * (len(first_ids) - len(counts)))
            for i in ids:
                counts[i] += 1
            ids.append(-1)
            ids.tofile(file)
        file.flush()
        counts, names = np.array(counts, "int64"), np.array(list(first_ids), object)
        kept = np.flatnonzero(counts >= min_count)
        if not len(kept):
            raise InputError(
                f"No word occurs min_count={min_count} times among {len(names)} different "
                "words; give more text or a lower number."
            )
        kept = kept[np.argsort(-counts[kept], kind="stable")]
        numbers = np.full(len(counts) + 1, -1, "int32")  # -1 for rare words
        numbers[kept] = np.arange(len(kept))
        numbers[-1] = len(kept)  # the end of a text, -1 in the file
        raw = np.memmap(file, "int32", "r")
        kept_file = tempfile.TemporaryFile()  # noqa: SIM115
        ids = np.memmap(kept_file, "int32", "w+", shape=raw.shape)
        length = 0
        for start in range(0, len(raw), BLOCK):
            part = numbers[raw[start : start + BLOCK]]
            part = part[part >= 0]
            ids[length : length + len(part)] = part
            length += len(part)
    ids, end = ids[:length], len(kept)
    if not ((ids[1:] != end) & (ids[:-1] != end)).any():
        raise InputError(
            f"No text has two words that occur min_count={min_count} times; give whole sentences, "
            "or a lower number."
        )
    return WordCorpus(list(names[kept]), counts[kept], ids)
