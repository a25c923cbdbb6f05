"""Batched search over rows of ids, shared by `Generator` and `Translator`."""

import abc
import functools

import numpy as np
import tensorflow as tf

from tfnlp.generation.continuations import generated, no_output
from tfnlp.generation.generation_settings import Beam, Sample
from tfnlp.generation.numpy_search import TextSearch
from tfnlp.generation.search_algorithms import search
from tfnlp.generation.stepwise_decoder import StepwiseDecoder
from tfnlp.text.tokenizers.special_tokens import END_TOKENS, end_token_id
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar
from tfnlp.utils.settings import check_at_least

# Rows are padded to this length times a power of two, since each length compiles a loop.
SHORTEST = 16


class Searcher(abc.ABC):
    """Batched text generation from rows of ids, by a decoder and a search.

    The whole search is one graph, compiled by XLA once for each shape: rows are padded to powers
    of two, and batches are filled up. The model's weights are shared, not copied.

    Args:
        decoder: from `decoder_of`.
        settings: a `SearchSettings`; its `pad` also pads rows.
        batch_size: rows in a batch.

    Raises:
        InputError: if settings contradict each other.
    """

    def __init__(self, decoder, settings, batch_size):
        check_at_least(1, batch_size=batch_size)
        settings.check(decoder.vocabulary_size)
        self.decoder, self.settings, self.batch_size = decoder, settings, batch_size
        self._run = tf.function(self._search, jit_compile=True, autograph=False)

    def _search(self, token_ids, mask, draws):
        return search(self.decoder, token_ids, mask, draws, self.settings)

    @abc.abstractmethod
    def _text_of(self, row, ids):
        """Return the text of the ids that follow a row."""

    @functools.cached_property  # keeps what is compiled
    def _stepwise(self):
        return StepwiseDecoder(self.decoder, self.settings.steps)

    def _each_streamed(self, rows, on_token):
        """Yield what `_each` does, in the order of the rows, and call `on_token` on the way."""
        write, start_token = TextSearch(self._stepwise, self.settings), self.decoder.start_token_id
        for number, ids in enumerate(rows):
            if len(ids):
                start = functools.partial(self._stepwise.start, *self._padded([ids]))
                first = list(ids) if start_token is None else [start_token]
                text_of = functools.partial(self._text_of, ids)
                yield number, write(start, first, text_of, number, on_token)

    def _each(self, rows, first=0):
        """Yield the number of each non-empty row and its `Generated`, in the order of completion.

        Samples of a row depend on its number and on `first`, the number of the first row.

        Raises:
            InputError: if the constraints leave no text for a row.
        """
        strategy = self.settings.strategy
        copies = strategy.texts if isinstance(strategy, Sample) else 1
        numbers = [number for number, ids in enumerate(rows) if len(ids)]
        jobs = [(number, copy) for number in numbers for copy in range(copies)]
        jobs.sort(key=lambda job: len(rows[job[0]]))
        open_texts = {number: [] for number in numbers}
        size = min(self.batch_size, len(jobs))
        with progress_bar(total=len(jobs), desc="generating", unit="text", disable=None) as bar:
            for start in range(0, len(jobs), size or 1):
                piece = jobs[start : start + size]
                filled = (piece * size)[:size]  # a smaller batch would be recompiled
                drawn = [(first + number, copy) for number, copy in filled]
                texts = self._batch([rows[number] for number, _ in filled], drawn)
                for (number, copy), of_row in zip(piece, texts, strict=False):
                    if not of_row:
                        raise no_output(first + number)
                    text_of = functools.partial(self._text_of, rows[number])
                    open_texts[number] += [
                        generated(ids, score, self.settings, text_of) for ids, score in of_row
                    ]
                    if copy == copies - 1:
                        yield number, open_texts.pop(number)
                bar.update(len(piece))

    def _batch(self, rows, jobs):
        """Return the texts of a batch, a list of (ids, score) for each row."""
        token_ids, mask = self._padded(rows)
        strategy, steps = self.settings.strategy, self.settings.steps
        beams = isinstance(strategy, Beam)
        draws = np.zeros((len(rows), steps), "float32")
        if isinstance(strategy, Sample):
            draws = np.stack([strategy.draws(*job, steps) for job in jobs])
        arguments = list(map(tf.constant, (token_ids, mask, draws)))
        # Calling the function itself would warn of retracing at each new length.
        arrays = (x.numpy() for x in self._run.get_concrete_function(*arguments)(*arguments))
        return [
            [
                (ids[:length].tolist(), float(score) if beams else None)
                for ids, length, score in zip(*row, strict=True)
                if (strategy.is_text(float(score), int(length)) if beams else score == 0)
            ]
            for row in zip(*arrays, strict=True)
        ]

    def _padded(self, rows):
        """Return rows of ids as one (B, L) int32, and their mask."""
        width = padded_length(max(map(len, rows)), self.decoder.max_length)
        token_ids = np.full((len(rows), width), self.settings.pad, "int32")
        mask = np.zeros(token_ids.shape, "int32")
        for i, ids in enumerate(rows):
            # A prompt is padded at the left, so that its text continues it; a source at the right.
            prompt = self.decoder.start_token_id is None
            place = slice(width - len(ids), width) if prompt else slice(len(ids))
            token_ids[i, place], mask[i, place] = ids, 1
        return token_ids, mask


def padded_length(length, longest=None):
    """Return `SHORTEST` times the power of two that holds `length`, or `longest` if it is less."""
    width = SHORTEST
    while width < length:
        width *= 2
    return min(width, longest or width)


def find_end_tokens(tokenizer, tokens=None):
    """Return the ids of the tokens that end a text, a tuple, as `find_end_token` does each."""
    tokens = [tokens] if tokens is None or isinstance(tokens, str) else tokens
    return tuple(find_end_token(tokenizer, token) for token in tokens)


def find_end_token(tokenizer, token=None):
    """Return the id of the token that ends a text, the first known of `END_TOKENS` by default.

    Raises:
        InputError: if the tokenizer lacks it.
    """
    end = end_token_id(tokenizer) if token is None else tokenizer.token_id(token)
    if end is None:
        wanted = f"end_token={token!r}" if token else f"an end token ({', '.join(END_TOKENS)})"
        raise InputError(
            f"The tokenizer lacks {wanted}, which ends texts; name one of its tokens as "
            "`end_token`."
        )
    return end
