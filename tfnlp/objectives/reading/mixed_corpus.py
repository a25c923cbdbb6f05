"""Several corpora read as one, in shares by weight."""

import hashlib

import numpy as np
from absl import logging

from tfnlp.utils.errors import InputError

# Times that a pass may read all tokens before it is told as a warning.
MANY_PASSES = 10
# Times from which on it is refused, as no pass would end.
MOST_PASSES = 10_000


class MixedCorpus:
    """Documents of several corpora; see `Corpus` for the methods.

    With weights corpus i contributes a share w_i / sum(w) of the tokens: the corpus that lasts
    longest is read once, the documents of the others are repeated, and what is left of a
    repetition is drawn at random. Documents stay whole, so that shares are as near as they allow.

    Args:
        corpora: see `Corpus`; all of one tokenizer.
        weights: a positive number for each corpus; None to read each document once.
        seed: of the draw.

    Raises:
        InputError: if by its weights a pass would read all tokens `MOST_PASSES` times.
    """

    def __init__(self, corpora, weights=None, seed=0):
        self.corpora = corpora
        if weights is None:
            documents = [np.arange(len(corpus)) for corpus in corpora]
        else:
            documents = _in_shares([corpus.token_counts for corpus in corpora], weights, seed)
        self._documents = np.concatenate(documents)
        self._numbers = np.repeat(np.arange(len(corpora)), list(map(len, documents)))

    def __len__(self):
        """Return the number of documents."""
        return len(self._documents)

    @property
    def sentence_counts(self):
        """The number of sentences of each document, (documents,) int64."""
        return self._gather("sentence_counts")

    @property
    def token_counts(self):
        """The number of tokens of each document, (documents,) int64."""
        return self._gather("token_counts")

    def document(self, index):
        """Return the ids of a document, (tokens,) int32."""
        corpus, number = self._place(index)
        return corpus.document(number)

    def part(self, index, start, stop):
        """Return the ids of a document from `start` to before `stop`, (tokens,) int32."""
        corpus, number = self._place(index)
        return corpus.part(number, start, stop)

    def sentences(self, index):
        """Return the sentences of a document, a list of (tokens,) int32."""
        corpus, number = self._place(index)
        return corpus.sentences(number)

    def sentence_lengths(self, index):
        """Return the number of tokens of each sentence of a document, (sentences,) int64."""
        corpus, number = self._place(index)
        return corpus.sentence_lengths(number)

    def fingerprint(self):
        """Return a SHA-256 of all ids, boundaries and repetitions."""
        digest = hashlib.sha256(" ".join(c.fingerprint() for c in self.corpora).encode())
        digest.update(np.ascontiguousarray(self._documents))
        digest.update(np.ascontiguousarray(self._numbers))
        return digest.hexdigest()

    def _place(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        return self.corpora[self._numbers[index]], int(self._documents[index])

    def _gather(self, name):
        counts = [getattr(corpus, name) for corpus in self.corpora]
        firsts = np.cumsum([0, *map(len, counts[:-1])])
        return np.concatenate(counts)[firsts[self._numbers] + self._documents]


def _in_shares(token_counts, weights, seed):
    """Return the numbers of the documents of each corpus that a pass reads, and log its length."""
    tokens = np.array([counts.sum() for counts in token_counts], "float64")
    repeats = np.asarray(weights, "float64") / tokens
    repeats /= repeats.min()
    planned = (repeats * tokens).sum() / tokens.sum()
    if planned >= MOST_PASSES:
        raise InputError(
            f"By their weights, corpus_weights={','.join(map(str, weights))}, a pass would read "
            f"the corpora {planned:.3g} times; raise the smallest weight."
        )
    rng = np.random.default_rng(seed)
    documents = [
        _repeated(counts, times, rng) for counts, times in zip(token_counts, repeats, strict=True)
    ]
    tokens_read = np.array(
        [counts[numbers].sum() for counts, numbers in zip(token_counts, documents, strict=True)]
    )
    passes = tokens_read.sum() / tokens.sum()
    log = logging.warning if passes > MANY_PASSES else logging.info
    log(
        "By their weights the corpora are read %s times in a pass, which so has %.3g times their "
        "tokens; `steps_per_epoch` parts it.",
        ", ".join(f"{times:.3g}" for times in tokens_read / tokens),
        passes,
    )
    return documents


def _repeated(token_counts, times, rng):
    """Return numbers of documents whose tokens are `times` those of all, nearly."""
    count, whole = len(token_counts), int(times + 1e-9)
    order = rng.permutation(count)
    sums = np.cumsum(np.append(0, token_counts[order]))
    drawn = np.abs(sums - (times - whole) * sums[-1]).argmin()
    return np.concatenate([np.tile(np.arange(count), whole), np.sort(order[:drawn])])
