"""Prompts as texts in, continuations as texts out."""

import dataclasses

import numpy as np
import tensorflow as tf

from tfnlp.errors import InputError
from tfnlp.generation.cache import CausalDecoder
from tfnlp.generation.search import search
from tfnlp.models import check_vocabulary
from tfnlp.objectives.frame import Frame
from tfnlp.progress import progress_bar
from tfnlp.searches import Beam, Constraints, Greedy, Sample
from tfnlp.text.special_tokens import END_TOKENS, end_token_id
from tfnlp.text.texts import as_texts, check_whole

# Prompts are padded to this length or a power of two times it: a loop is compiled for each.
SHORTEST = 16


@dataclasses.dataclass(frozen=True)
class Generated:
    """A text that was written.

    Args:
        text: what comes after the prompt.
        token_ids: its ids, a tuple, without the end token.
        ended: whether the model ended it, before the greatest length.
        score: of a beam search (`Beam`), else None.
    """

    text: str
    token_ids: tuple
    ended: bool
    score: float | None


class Generator:
    """Continues prompts by a causal language model.

    The whole search is one graph, compiled by XLA once for each shape: prompts are padded to
    powers of two, and batches filled up. The model's weights are shared, not copied.

    Args:
        model: a GPT or a GPT-2 with the head "causal_lm".
        tokenizer: its tokenizer.
        search: a `Greedy`, `Beam` or `Sample`; greedy where None.
        constraints: a `Constraints`; none where None.
        max_new_tokens: the most tokens that are written.
        batch_size: prompts in a batch.
        end_token: the token that ends a text; what stands between the documents of pretraining
            (`END_TOKENS`) where None.

    Raises:
        InputError: for a model of another family or head, a tokenizer that is not the model's or
            has no end token, and settings that contradict each other.
    """

    def __init__(
        self,
        model,
        tokenizer,
        search=None,
        constraints=None,
        max_new_tokens=64,
        batch_size=16,
        end_token=None,
    ):
        search, constraints = search or Greedy(), constraints or Constraints()
        self.decoder = CausalDecoder(model)
        check_vocabulary(tokenizer, model)
        check_whole(max_new_tokens=max_new_tokens, batch_size=batch_size)
        for name, value in (("max_new_tokens", max_new_tokens), ("batch_size", batch_size)):
            if value < 1:
                raise InputError(f"{name}={value} must be at least 1.")
        constraints.check(self.decoder.vocabulary_size, max_new_tokens)
        if isinstance(search, Beam) and 2 * search.beams > self.decoder.vocabulary_size:
            raise InputError(
                f"beams={search.beams} is more than half of the vocabulary, which has "
                f"{self.decoder.vocabulary_size} tokens; give fewer."
            )
        self.tokenizer, self.search, self.constraints = tokenizer, search, constraints
        self.max_new_tokens, self.batch_size = max_new_tokens, batch_size
        self.end = find_end_token(tokenizer, end_token)
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
            self.end,
        )

    def __call__(self, prompts):
        """Continues prompts.

        Args:
            prompts: a list of strings; an empty one is a text from its beginning.

        Returns:
            A list of `Generated` for each prompt, the best first.

        Raises:
            InputError: if a prompt is not a string, or too long for the model.
        """
        prompts = as_texts(prompts, "prompts")
        found = self.continue_ids(self._ids(prompts))
        return [
            [self._generated(prompt, ids, *one) for one in texts]
            for prompt, (ids, texts) in zip(prompts, found, strict=True)
        ]

    def continue_ids(self, prompts):
        """Continues prompts that are ids already.

        Args:
            prompts: a list of lists of ids, none empty.

        Returns:
            For each prompt its ids and a list of (ids, whether it was ended, score).
        """
        self._check_lengths(prompts)
        copies = self.search.texts if isinstance(self.search, Sample) else 1
        rows = [(number, copy) for number in range(len(prompts)) for copy in range(copies)]
        rows.sort(key=lambda row: len(prompts[row[0]]))
        found = [[] for _ in prompts]
        size = min(self.batch_size, len(rows))
        with progress_bar(total=len(rows), desc="generating", unit="text", disable=None) as bar:
            for start in range(0, len(rows), size or 1):
                piece = rows[start : start + size]
                filled = (piece * size)[:size]  # a smaller batch would be compiled anew
                texts = self._batch([prompts[number] for number, _ in filled], filled)
                for (number, _), of_prompt in zip(piece, texts, strict=False):
                    found[number] += of_prompt
                bar.update(len(piece))
        return list(zip(prompts, found, strict=True))

    def _batch(self, prompts, rows):
        """The texts of a batch, a list of (ids, ended, score) for each prompt."""
        width = SHORTEST
        while width < max(map(len, prompts)):
            width *= 2
        width = min(width, self.decoder.max_length or width)
        token_ids = np.full((len(prompts), width), self.end, "int32")
        mask = np.zeros(token_ids.shape, "int32")
        for row, ids in enumerate(prompts):
            token_ids[row, width - len(ids) :] = ids
            mask[row, width - len(ids) :] = 1
        draws = np.zeros((len(prompts), self.max_new_tokens), "float32")
        if isinstance(self.search, Sample):
            for row, (number, copy) in enumerate(rows):
                rng = np.random.default_rng([self.search.seed, number, copy])
                draws[row] = rng.random(self.max_new_tokens, "float32")
        found = self._run(*map(tf.constant, (token_ids, mask, draws)))
        arrays = (x.numpy() for x in found)
        return [
            [
                self._cut(ids[:length].tolist(), float(score))
                for ids, length, score in zip(*row, strict=True)
            ]
            for row in zip(*arrays, strict=True)
        ]

    def _cut(self, ids, score):
        ended = bool(ids) and ids[-1] == self.end
        return ids[:-1] if ended else ids, ended, score

    def _ids(self, prompts):
        """Each prompt's ids, without what frames a text."""
        before, after = Frame.of(self.tokenizer).single
        rows = []
        for encoding in self.tokenizer.encode(prompts):
            ids = list(encoding.token_ids)
            rows.append(ids[len(before) : len(ids) - len(after)] or [self.end])
        return rows

    def _check_lengths(self, prompts):
        longest = self.decoder.max_length
        for number, ids in enumerate(prompts):
            if not len(ids):
                raise InputError(f"prompts[{number}] has no token; give at least one.")
            if longest is not None and len(ids) + self.max_new_tokens > longest:
                left = longest - len(ids)
                hint = f"or give max_new_tokens={left}" if left > 0 else "it alone is too long"
                raise InputError(
                    f"prompts[{number}] has {len(ids)} tokens, which with "
                    f"max_new_tokens={self.max_new_tokens} are more than the model's {longest} "
                    f"positions; shorten it ({hint})."
                )

    def _generated(self, prompt, given, ids, ended, score):
        """The text of what was written, cut off behind the prompt's own."""
        before = self.tokenizer.decode(given)
        whole = self.tokenizer.decode([*given, *ids])
        text = whole[len(before) :] if whole.startswith(before) else self.tokenizer.decode(ids)
        is_beam = isinstance(self.search, Beam)
        return Generated(text, tuple(ids), ended, score if is_beam else None)


def generate(
    model,
    tokenizer,
    prompts,
    search=None,
    max_new_tokens=64,
    constraints=None,
    batch_size=16,
    end_token=None,
):
    """Continues prompts, once; a `Generator` again and again, which compiles but once.

    Args:
        prompts: a list of strings.
        model, tokenizer, search, max_new_tokens, constraints, batch_size, end_token: as
            `Generator` takes them.

    Returns:
        A list of `Generated` for each prompt, the best first.

    Raises:
        InputError: as `Generator`, and as its call.
    """
    generator = Generator(
        model, tokenizer, search, constraints, max_new_tokens, batch_size, end_token
    )
    return generator(prompts)


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


def forbidden_ids(tokenizer, words):
    """What `Constraints` forbid so that words are not written.

    Args:
        tokenizer: from `tfnlp.text`.
        words: a list of strings.

    Returns:
        A tuple of tuples of ids: each word as it is read at the beginning of a text, and after a
        space, which may have other tokens.
    """
    words = as_texts(words, "words")
    before, after = Frame.of(tokenizer).single
    rows = {}
    for encoding in tokenizer.encode([*words, *(f" {word}" for word in words)]):
        ids = tuple(encoding.token_ids)
        rows[ids[len(before) : len(ids) - len(after)]] = None
    return tuple(row for row in rows if row)
