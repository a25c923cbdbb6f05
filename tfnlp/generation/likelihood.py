"""Likelihood of completions under a causal language model."""

import numpy as np
import tensorflow as tf

from tfnlp.generation.batched_search import find_end_token, padded_length
from tfnlp.models import check_vocabulary, config_of
from tfnlp.text.reading.text_arguments import as_pairs
from tfnlp.text.tokenizers.special_tokens import plain_ids
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar
from tfnlp.utils.settings import check_at_least


class LikelihoodScorer:
    """Scores of completions of prompts by their likelihood.

    Args:
        model: with the head "causal_lm", from `build_model` or `load_model`.
        tokenizer: its tokenizer.
        batch_size: rows of a batch.
        end_token: the token that replaces an empty prompt, as the beginning of a text; the
            separator of documents where None.

    Raises:
        InputError: if the model has another head, or the tokenizer is not the model's or has no
            end token.
    """

    def __init__(self, model, tokenizer, batch_size=8, end_token=None):
        head = getattr(model, "head", None)
        if head != "causal_lm":
            raise InputError(
                f"Completions are scored by a causal language model, but {model.name} has the "
                f"head {head!r}; load one with the head 'causal_lm'."
            )
        check_vocabulary(tokenizer, model)
        check_at_least(1, batch_size=batch_size)
        self.model, self.tokenizer, self.batch_size = model, tokenizer, batch_size
        self.max_length = config_of(model).max_length
        self.end = find_end_token(tokenizer, end_token)
        self._run = tf.function(self._log_probabilities, autograph=False)

    def __call__(self, prompts, completions):
        """Return the log-probability of each completion after its prompt, (n,) float64.

        It is summed over the tokens of the completion.

        Args:
            prompts, completions: lists of as many strings.

        Raises:
            InputError: if numbers are unequal, a completion has no token, or a row is too long for
                the model.
        """
        prompts, completions = as_pairs(prompts, completions, ("prompts", "completions"))
        return self.score_ids(self.prompt_ids(prompts), plain_ids(self.tokenizer, completions))

    def prompt_ids(self, prompts):
        """Return the ids of prompts; the end token for an empty one."""
        return [ids or [self.end] for ids in plain_ids(self.tokenizer, prompts)]

    def score_ids(self, prompts, completions):
        """Return the scores of lists of ids, none empty; completions that share a row run once."""
        rows, places = {}, []
        for number, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            if not len(completion):
                raise InputError(f"completions[{number}] has no token; give at least one.")
            row = (*prompt, *completion[:-1])
            if self.max_length is not None and len(row) > self.max_length:
                raise InputError(
                    f"prompts[{number}] and its completion have {len(row)} tokens, more than the "
                    f"model's {self.max_length} positions; give fewer shots, or shorter ones."
                )
            places.append((rows.setdefault(row, len(rows)), len(prompt)))
        rows, scores = list(rows), np.zeros(len(places))
        of_row = [[] for _ in rows]
        for number, (row, start) in enumerate(places):
            of_row[row].append((number, start))
        first = [min(start for _, start in starts) for starts in of_row]  # to score in each row
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        with progress_bar(total=len(rows), desc="scoring", unit="row", delay=5) as bar:
            for begin in range(0, len(order), self.batch_size):
                batch = order[begin : begin + self.batch_size]
                batch_logs = self._batch([rows[i] for i in batch], [first[i] for i in batch])
                for i, logs in zip(batch, batch_logs, strict=False):
                    for number, start in of_row[i]:
                        tokens = completions[number]
                        at = start - first[i] + np.arange(len(tokens))
                        scores[number] = logs[at, tokens].sum(dtype="float64")
                bar.update(len(batch))
        return scores

    def _batch(self, rows, first):
        """Return the log-probabilities (B, P, V) after the tokens from `first` - 1 on."""
        width = padded_length(max(map(len, rows)), self.max_length)
        count = max(len(row) - start + 1 for row, start in zip(rows, first, strict=True))
        count = 1 << (count - 1).bit_length()  # as few shapes as powers of two
        ids = np.full((self.batch_size, width), self.end, "int32")
        mask = np.zeros(ids.shape, "int32")
        at = np.zeros((self.batch_size, count), "int32")
        mask[:, 0] = 1
        for i, (row, start) in enumerate(zip(rows, first, strict=True)):
            ids[i, : len(row)], mask[i, : len(row)] = row, 1
            at[i] = np.minimum(start - 1 + np.arange(count), len(row) - 1)
        inputs = [*map(tf.constant, (ids, mask, at))]
        # Calling the function itself would warn of retracing at each new length.
        return self._run.get_concrete_function(*inputs)(*inputs).numpy()

    def _log_probabilities(self, ids, mask, at):
        inputs = {"token_ids": ids, "segment_ids": tf.zeros_like(ids), "padding_mask": mask}
        logits = self.model(inputs, training=False)["logits"]
        return tf.nn.log_softmax(tf.gather(logits, at, batch_dims=1))
