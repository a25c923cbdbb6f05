"""Word vectors: files, neighbours, analogies."""

import numpy as np

from tfnlp.text.reading.lines import read_lines
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace
from tfnlp.utils.progress import progress_bar


class WordVectors:
    """Word vectors.

    Args:
        words: a list of strings; of two that are the same the first counts.
        vectors: (words, D).

    Attributes:
        unit: (words, D), the vectors scaled to length 1.
    """

    def __init__(self, words, vectors):
        self.words = list(words)
        self.vectors = np.asarray(vectors, "float32")
        self.unit = self.vectors / np.maximum(
            np.linalg.norm(self.vectors, axis=1, keepdims=True), 1e-12
        )
        self._rows = {word: row for row, word in reversed([*enumerate(self.words)])}

    def __contains__(self, word):
        return word in self._rows

    def __getitem__(self, word):
        return self.vectors[self._rows[word]]

    def __len__(self):
        return len(self.words)

    def similarity(self, first, second):
        """Return the cosine of two words' vectors."""
        return float(self.unit[self._rows[first]] @ self.unit[self._rows[second]])

    def nearest(self, word, k=10):
        """Return the `k` nearest other words, as a list of (word, cosine)."""
        return self._best(self.unit @ self.unit[self._rows[word]], [word], k)

    def analogy(self, positive, negative, k=1, multiply=False):
        """Return the `k` words that complete an analogy, as a list of (word, score).

        'man' is to 'king' as 'woman' to `analogy(["king", "woman"], ["man"])`. The score is the
        cosine with the sum of the unit vectors, negative ones subtracted (3CosAdd; Mikolov et al.
        2013c), or with `multiply` the product of the similarities over that of the negative ones,
        each (1 + cosine) / 2 (3CosMul; Levy & Goldberg 2014, eq. 4).

        Args:
            positive, negative: lists of words.
            k: the number of words.
            multiply: whether to take 3CosMul.
        """
        for_words, against = (
            self.unit[[self._rows[word] for word in words]] for words in (positive, negative)
        )
        if multiply:
            near, far = (1 + self.unit @ for_words.T) / 2, (1 + self.unit @ against.T) / 2
            scores = near.prod(1) / (far.prod(1) + 1e-6)
        else:
            target = for_words.sum(0) - against.sum(0)
            scores = self.unit @ (target / max(np.linalg.norm(target), 1e-12))
        return self._best(scores, [*positive, *negative], k)

    def odd_one_out(self, words):
        """Return the word that is farthest from the mean of the unit vectors."""
        unit = self.unit[[self._rows[word] for word in words]]
        return words[int(np.argmin(unit @ unit.mean(0)))]

    def _best(self, scores, excluded, k):
        scores = scores.copy()
        scores[[self._rows[word] for word in excluded]] = -np.inf
        best = np.argsort(-scores, kind="stable")[: min(k, len(self) - len(set(excluded)))]
        return [(self.words[i], float(scores[i])) for i in best]

    def save(self, path):
        """Write word2vec's text format, or its binary format to a file that ends in .bin.

        Raises:
            InputError: if a word has a space, which ends words in these formats.
        """
        spaced = next((word for word in self.words if len(word.split()) != 1), None)
        if spaced is not None:
            raise InputError(f"The word {spaced!r} has a space, which {path} cannot hold.")
        binary = str(path).endswith(".bin")
        with atomic_replace(path) as partial, open(partial, "wb") as file:
            file.write(f"{len(self)} {self.vectors.shape[1]}\n".encode())
            for word, vector in zip(self.words, self.vectors, strict=True):
                numbers = vector.tobytes() if binary else " ".join(map(str, vector)).encode()
                file.write(word.encode() + b" " + numbers + b"\n")

    @classmethod
    def load(cls, path):
        """Read word2vec's text or binary (.bin) format, or GloVe's text format.

        Raises:
            InputError: if the file is missing, or a line or the header is broken.
        """
        path = str(path)
        return cls(*(_read_binary(path) if path.endswith(".bin") else _read_text(path)))


def _read_text(path):
    words, rows, count, width = [], [], None, None
    for number, line in progress_bar(read_lines(path), desc="vectors", unit="word"):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(map(str.isdecimal, fields)):
            count, width = map(int, fields)  # of word2vec; GloVe's files have none
            continue
        width = width or len(fields) - 1
        # A few of GloVe's words contain a space.
        word, numbers = " ".join(fields[:-width]), fields[-width:]
        try:
            row = np.array(numbers, "float32")
        except ValueError:
            row = None
        if not word or row is None or not np.isfinite(row).all():
            raise InputError(
                f"{path}, line {number}: expected a word and {width or 'its'} numbers."
            )
        words.append(word)
        rows.append(row)
    if not words:
        raise InputError(f"{path} holds no vector.")
    if count not in (None, len(words)):
        raise InputError(
            f"{path} holds {len(words)} vectors, but its header says {count}; get the whole file, "
            "or mend the header."
        )
    return words, np.stack(rows)


def _read_binary(path):
    try:
        with open(path, "rb") as file:
            header, _, data = file.read().partition(b"\n")
    except OSError as e:
        raise InputError(f"{path} cannot be read: {e.strerror}.") from None
    words, rows, place = [], [], 0
    try:
        count, width = map(int, header.split())
        if width < 1:
            raise ValueError(f"{width} columns")
        for _ in range(count):
            space = data.index(b" ", place)
            words.append(data[place:space].lstrip(b"\n").decode())
            rows.append(np.frombuffer(data, "float32", width, space + 1))
            place = space + 1 + 4 * width
        if data[place:].strip(b"\n"):
            raise ValueError(f"{len(data) - place} bytes follow the last vector")
        return words, np.stack(rows)
    except ValueError as e:
        raise InputError(
            f"{path} begins with {header[:40]!r}, and does not hold that many words and "
            f"columns in word2vec's binary format ({e}); get the whole file."
        ) from None
