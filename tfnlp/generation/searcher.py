"""Rows of ids through a search, in batches: what `Generator` and `Translator` do alike."""

import numpy as np
import tensorflow as tf

from tfnlp.errors import InputError
from tfnlp.generation.search import search
from tfnlp.progress import progress_bar
from tfnlp.searches import Beam, Sample
from tfnlp.text.special_tokens import END_TOKENS, end_token_id
from tfnlp.text.texts import check_whole

# Rows are padded to this length or a power of two times it: a loop is compiled for each.
SHORTEST = 16


class Searcher:
    """Texts from rows of ids, by a decoder and a search.

    The whole search is one graph, compiled by XLA once for each shape: rows are padded to powers
    of two, and batches filled up. The model's weights are shared, not copied.

    Args:
        decoder: from `decoder_of`.
        search: a `Greedy`, `Beam` or `Sample`.
        constraints: a `Constraints`.
        max_new_tokens: the most tokens that are written.
        batch_size: rows in a batch.
        end: the id that ends a text.
        pad: the id that stands after it, and fills up rows.

    Raises:
        InputError: for settings that contradict each other.
    """

    def __init__(self, decoder, search, constraints, max_new_tokens, batch_size, end, pad):
        check_whole(max_new_tokens=max_new_tokens, batch_size=batch_size)
        for name, value in (("max_new_tokens", max_new_tokens), ("batch_size", batch_size)):
            if value < 1:
                raise InputError(f"{name}={value} must be at least 1.")
        constraints.check(decoder.vocabulary_size, max_new_tokens)
        if isinstance(search, Beam) and 2 * search.beams > decoder.vocabulary_size:
            raise InputError(
                f"beams={search.beams} is more than half of the vocabulary, which has "
                f"{decoder.vocabulary_size} tokens; give fewer."
            )
        self.decoder, self.search, self.constraints = decoder, search, constraints
        self.max_new_tokens, self.batch_size = max_new_tokens, batch_size
        self.end, self.pad = end, pad
        self._run = tf.function(self._search, jit_compile=True, autograph=False)

    def _search(self, token_ids, mask, draws):
        return search(
            self.decoder,
            token_ids,
            mask,
            draws,
            self.search,
            self.constraints,
            self.max_new_tokens,
            self.end,
            self.pad,
        )

    def _find(self, rows):
        """For each row of ids a list of (ids, whether it was ended, score); of an empty one none.

        Empty rows are counted: what is drawn of a row depends on its number.

        Raises:
            InputError: for a row for which the constraints leave no text.
        """
        found = [[] for _ in rows]
        for number, texts in self._each(rows):
            found[number] = texts
        return found

    def _each(self, rows, first=0):
        """Yields the number of each row that is not empty and its texts, as batches are done.

        What is drawn of a row depends on its number and on `first`, the number of the first.
        """
        copies = self.search.texts if isinstance(self.search, Sample) else 1
        numbers = [number for number, ids in enumerate(rows) if len(ids)]
        jobs = [(number, copy) for number in numbers for copy in range(copies)]
        jobs.sort(key=lambda job: len(rows[job[0]]))
        open_texts = {number: [] for number in numbers}
        size = min(self.batch_size, len(jobs))
        with progress_bar(total=len(jobs), desc="generating", unit="text", disable=None) as bar:
            for start in range(0, len(jobs), size or 1):
                piece = jobs[start : start + size]
                filled = (piece * size)[:size]  # a smaller batch would be compiled anew
                drawn = [(first + number, copy) for number, copy in filled]
                texts = self._batch([rows[number] for number, _ in filled], drawn)
                for (number, copy), of_row in zip(piece, texts, strict=False):
                    if not of_row:
                        raise InputError(
                            f"The constraints leave nothing to write for text "
                            f"{first + number + 1}: at some place no token is allowed; forbid "
                            "less, or give a smaller min_new_tokens or a larger "
                            "no_repeat_ngram_size."
                        )
                    open_texts[number] += of_row
                    if copy == copies - 1:
                        yield number, open_texts.pop(number)
                bar.update(len(piece))

    def _batch(self, rows, jobs):
        """The texts of a batch, a list of (ids, ended, score) for each row."""
        width = SHORTEST
        while width < max(map(len, rows)):
            width *= 2
        width = min(width, self.decoder.max_length or width)
        token_ids = np.full((len(rows), width), self.pad, "int32")
        mask = np.zeros(token_ids.shape, "int32")
        for i, ids in enumerate(rows):
            # A prompt ends where its text goes on; a source begins at the first position.
            prompt = self.decoder.start_token_id is None
            here = slice(width - len(ids), width) if prompt else slice(len(ids))
            token_ids[i, here], mask[i, here] = ids, 1
        draws = np.zeros((len(rows), self.max_new_tokens), "float32")
        if isinstance(self.search, Sample):
            for i, (number, copy) in enumerate(jobs):
                rng = np.random.default_rng([self.search.seed, number, copy])
                draws[i] = rng.random(self.max_new_tokens, "float32")
        given = [*map(tf.constant, (token_ids, mask, draws))]
        # The function itself would warn of each length as of one traced in vain.
        found = self._run.get_concrete_function(*given)(*given)
        arrays = (x.numpy() for x in found)
        return [
            [
                self._cut(ids[:length].tolist(), float(score))
                for ids, length, score in zip(*row, strict=True)
                if self._is_text(float(score), int(length))
            ]
            for row in zip(*arrays, strict=True)
        ]

    def _is_text(self, score, length):
        if isinstance(self.search, Beam):
            return self.search.is_text(score, length)
        return score == 0

    def _cut(self, ids, score):
        ends = bool(ids) and ids[-1] == self.end
        # An end that was forced is none of the model's.
        forced = len(ids) == self.max_new_tokens and self.constraints.forced_last == self.end
        return ids[:-1] if ends else ids, ends and not forced, score

    def _score(self, score):
        """A text's score, which a beam search alone has."""
        return score if isinstance(self.search, Beam) else None


def find_end_token(tokenizer, token=None):
    """The id of the token that ends a text.

    Args:
        tokenizer: from `tfnlp.text`.
        token: the token; the first of `END_TOKENS` that there is where None.

    Raises:
        InputError: for a tokenizer without it.
    """
    end = end_token_id(tokenizer) if token is None else tokenizer.token_id(token)
    if end is None:
        wanted = f"end_token={token!r}" if token else f"an end token ({', '.join(END_TOKENS)})"
        raise InputError(
            f"The tokenizer lacks {wanted}, without which no text ends; name one of its tokens "
            "as `end_token`."
        )
    return end
