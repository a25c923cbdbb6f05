"""Augmentation of texts by continuations that a causal language model samples."""

import re

import numpy as np
import tensorflow as tf

from distill.learning.augmentation_settings import ContinuationConfig
from tfnlp.models import check_vocabulary
from tfnlp.text import Encoding, LengthBatches
from tfnlp.training.run.inference import input_signature
from tfnlp.utils.errors import InputError


class TextContinuer:
    """Augmentation of texts by sampled continuations of their beginnings from a causal LM.

    A continuation ends at an end token, at a line break, or after `max_tokens`.

    Args:
        model: with the head "causal_lm".
        tokenizer: its tokenizer.
        config: a `ContinuationConfig`.
        batch_size: texts in a batch.

    Raises:
        InputError: if the model has another head.
    """

    def __init__(self, model, tokenizer, config=None, batch_size=64):
        if model.head != "causal_lm":
            raise InputError(
                f"The model has the head {model.head!r}, but continuing texts needs 'causal_lm'; "
                "give a causal language model."
            )
        check_vocabulary(tokenizer, model)
        self.model, self.tokenizer = model, tokenizer
        self.config = config or ContinuationConfig()
        self.batch_size = batch_size
        special = list(tokenizer.encode([""])[0].token_ids)
        self._end = special[-1] if special else None  # such as [SEP]
        self._ends = {self._end, *map(tokenizer.token_id, ("<|endoftext|>", "</s>"))} - {None}
        self._next_tokens = _next_tokens(model, self.config.top_k, self.config.temperature)

    def __call__(self, texts, first=0):
        """Return the continuations of some texts; arguments as for `WordReplacer`."""
        config, rows, draws = self.config, [], []
        longest = self.model.text_config.max_length
        for number, text in enumerate(texts, first):
            words = list(re.finditer(r"\S+", text))
            last = words[max(round(config.kept * len(words)), 1) - 1].end() if words else 0
            ids = list(self.tokenizer.encode([text[:last]], max_length=longest)[0].token_ids)
            if ids and ids[-1] == self._end:
                ids.pop()
            rng = np.random.default_rng([config.seed, number])
            draws += list(rng.random((config.copies, config.max_tokens)))
            rows += [(text[:last], ids)] * config.copies
        copies, size = [], self.batch_size
        for start in range(0, len(rows), size):
            copies += self._continue(rows[start : start + size], draws[start : start + size])
        return [copies[i : i + config.copies] for i in range(0, len(copies), config.copies)]

    def _continue(self, rows, draws):
        """Return continued texts, from (beginning of a text, its ids) pairs and uniform draws."""
        longest = self.model.text_config.max_length
        ids = [list(beginning_ids) for _, beginning_ids in rows]
        unfinished = [i for i, row in enumerate(ids) if row]
        for step in range(self.config.max_tokens):
            if longest is not None:
                unfinished = [i for i in unfinished if len(ids[i]) < longest]
            if not unfinished:
                break
            tokens, shares = self._next_tokens(self._inputs([ids[i] for i in unfinished]))
            continued = []
            for i, best, share in zip(unfinished, tokens, shares, strict=True):
                token = int(best[min(np.searchsorted(share, draws[i][step]), len(best) - 1)])
                if token not in self._ends and "\n" not in self.tokenizer.decode([token]):
                    ids[i].append(token)
                    continued.append(i)
            unfinished = continued
        return [self._text(*row, text_ids) for row, text_ids in zip(rows, ids, strict=True)]

    def _inputs(self, ids):
        """Return the inputs of the model for lists of ids, in one batch."""
        encodings = [Encoding(row, [0] * len(row), truncated=False) for row in ids]
        pad = self.tokenizer.pad_token_id
        batches = LengthBatches(encodings, len(encodings), pad_token_id=pad)
        return batches.batch(np.arange(len(encodings)))[0]

    def _text(self, beginning, beginning_ids, ids):
        """Return the beginning of a text as written, followed by the decoded continuation."""
        before, after = self.tokenizer.decode(beginning_ids), self.tokenizer.decode(ids)
        return beginning + after.removeprefix(before) if after.startswith(before) else after


def _next_tokens(model, top_k, temperature):
    """Build a function from inputs to the next tokens and cumulative shares, both (B, K)."""
    top_k = min(top_k, model.output["logits"].shape[-1])

    @tf.function(input_signature=[input_signature(model)])
    def next_tokens(inputs):
        last = tf.reduce_sum(inputs["padding_mask"], 1) - 1
        logits = tf.gather(model(inputs, training=False)["logits"], last, batch_dims=1)
        values, ids = tf.math.top_k(tf.cast(logits, "float32"), top_k)
        return ids, tf.cumsum(tf.nn.softmax(values / temperature), axis=1)

    return lambda inputs: [x.numpy() for x in next_tokens(inputs)]
