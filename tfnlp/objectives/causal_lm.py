"""Causal language modelling: each token is predicted from those before it.

Radford et al. 2018, 'GPT', eq. 1; with a memory across segments Dai et al. 2019,
'Transformer-XL', section 3.2.
"""

import dataclasses
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from tfnlp.errors import InputError
from tfnlp.losses import correct, cross_entropy, log_likelihood, weighted_mean
from tfnlp.models import config_of
from tfnlp.models.build import family_name
from tfnlp.objectives.memory import check_memory, lane_inputs, lane_signature, with_memory
from tfnlp.objectives.stream import StreamBatches, as_inputs
from tfnlp.text.batches import IGNORED

# The input that says which token comes after each: its probability alone is computed where a
# softmax over all tokens is large.
NEXT = "next_token_ids"
# Times that each token counts beside those that it occurs.
ADDED = 0.1


@dataclasses.dataclass(frozen=True)
class CausalLM:
    """The next token at every position of a stream of documents.

    Args:
        memory: whether each lane of the batch goes on from one segment to the next with a memory
            (Transformer-XL), or with its state (a recurrent network: truncated backpropagation);
            the model is one of `build_model(memory=True)` then. Else examples
            are segments of their own, in random order.
    """

    memory: bool = False

    head: ClassVar[str] = "causal_lm"
    loss_name: ClassVar[str] = "causal_lm_loss"
    loss_weights: ClassVar[dict] = {"causal_lm_loss": 1.0}

    def check(self, config, tokenizer):
        """Raises an InputError for a family that predicts no next token, or has no memory."""
        if config.language_model != self.head:
            raise InputError(
                f"Causal language modelling does not fit the family {family_name(config)!r}, "
                "whose tokens see those after them; give a GPT, a GPT-2, a Transformer-XL or a "
                "recurrent network of one direction."
            )
        if self.memory:
            check_memory(config, "memory=True")

    def start(self, model, batches):
        """Begin a fresh output bias at the log of each token's share of the text.

        From zero, a short training leaves much probability to tokens that never occur. A bias
        that is not zero has been learned, and stays.

        Args:
            model: a `TextModel` with the head "causal_lm".
            batches: the `CausalBatches` that it will learn from.
        """
        config = config_of(model)
        if not config.output_bias:
            return
        bias = model.get_layer("lm_bias").bias
        if np.any(ops.convert_to_numpy(bias)):
            return
        counts = batches.stream(0).count_tokens(config.vocabulary_size) + ADDED
        bias.assign(np.log(counts / counts.sum()))

    def trained(self, model, batch_size=None):
        """The model that is fitted, of the same weights.

        Args:
            model: a `TextModel` with the head "causal_lm".
            batch_size: with memory, the lanes of a batch over all devices.

        Returns:
            A `keras.Model` from the inputs of the batches to `logits` (B, L, V); of an adaptive
            softmax to `log_probabilities` (B, L), those of the next tokens alone.
        """
        if ("memory" in model.input) != self.memory:
            raise InputError(
                f"memory={self.memory} does not fit model {model.name}, which was built "
                f"with{'out' if self.memory else ''} memory; build it with memory={self.memory}."
            )
        inner = next_token_model(model)
        return with_memory(inner, config_of(model), batch_size) if self.memory else inner

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """The `CausalBatches` of a corpus."""
        return CausalBatches(
            corpus, tokenizer, batch_size, max_length, seed, shuffle, memory=self.memory
        )

    def losses(self, labels, outputs, sample_weight=None):
        """The mean cross-entropy of the next tokens (B, L), -100 counting nothing."""
        if "logits" in outputs:
            loss = cross_entropy(labels, outputs["logits"], sample_weight)
        else:
            real = ops.not_equal(labels, IGNORED)
            loss = weighted_mean(-outputs["log_probabilities"], real, sample_weight)
        return {self.loss_name: loss}

    def scores(self, labels, outputs):
        """The log-likelihood of the next tokens and, where there are logits, the accuracy.

        Perplexity is the exponential of the mean log-likelihood, negated.
        """
        real = ops.cast(ops.not_equal(labels, IGNORED), "float32")
        count = ops.sum(real)
        if "logits" not in outputs:
            return {"log_likelihood": (ops.sum(outputs["log_probabilities"] * real), count)}
        return {
            "log_likelihood": log_likelihood(labels, outputs["logits"], real),
            "accuracy": correct(labels, outputs["logits"], real),
        }


class CausalBatches(StreamBatches):
    """Segments of a stream with the token after each of their own.

    With memory the stream is cut into as many lanes as a batch has rows, and segment t + 1 of a
    lane is what comes after segment t; fewer tokens than there are lanes are left out at the end.
    Without, segments are examples in random order. The last of a lane, or of the stream, may be
    short: the ids that fill it have the label -100.

    Args:
        corpus, tokenizer, batch_size, max_length, seed, shuffle: as `StreamBatches` takes them.
        memory: whether there are lanes.

    Raises:
        InputError: for too few tokens.
    """

    def __init__(
        self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True, memory=False
    ):
        super().__init__(corpus, tokenizer, batch_size, max_length, seed, shuffle)
        self.memory = memory
        lanes = batch_size if memory else 1
        what = f"{batch_size} lanes of max_length={max_length}" if memory else "a segment"
        self.check_tokens(lanes * max_length + 1, f"{what} and the token after")
        # The last token of the stream is predicted, but nothing from it.
        self.lane_size = (self.tokens - 1) // lanes
        self.rows = lanes * -(-self.lane_size // max_length)

    @property
    def lengths(self):
        """The tokens of each example of an epoch, which are fewer in the last of a lane."""
        lanes = self.batch_size if self.memory else 1
        begins = np.arange(0, self.lane_size, self.max_length)
        return np.repeat(np.minimum(self.lane_size - begins, self.max_length), lanes)

    def settings(self):
        """What decides the batches beside what all streams have."""
        return [self.memory]

    def epoch(self, epoch=0, skip=0):
        """Yields the batches of an epoch, without the first `skip`."""
        stream, order = self.stream(epoch), self.window_order(epoch)
        for number in range(skip, len(self)):
            if self.memory:
                lanes = np.arange(self.batch_size) * self.lane_size
                starts, ends = lanes + number * self.max_length, lanes + self.lane_size
            else:
                rows = order[number * self.batch_size : (number + 1) * self.batch_size]
                starts, ends = rows * self.max_length, np.full(len(rows), self.lane_size)
            yield self._batch(stream, starts, ends, continues=number > 0)

    def _batch(self, stream, starts, ends, continues):
        ids = np.full((len(starts), self.max_length), self.pad_token_id, "int32")
        mask, labels = np.zeros_like(ids), np.full_like(ids, IGNORED)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            found = stream.read(start, min(start + self.max_length, end) + 1)
            size = len(found) - 1
            ids[row, :size], labels[row, :size] = found[:-1], found[1:]
            mask[row, :size] = 1
        # TensorFlow may write over an array that it has for two.
        inputs = as_inputs(ids) | {"padding_mask": mask, NEXT: labels.copy()}
        if self.memory:
            inputs |= lane_inputs(len(ids), continues)
        return inputs, labels

    def signature(self):
        """The `tf.TensorSpec`s of a batch."""
        import tensorflow as tf

        ids = tf.TensorSpec((None, self.max_length), "int32")
        names = ("token_ids", "segment_ids", "padding_mask", NEXT)
        more = lane_signature() if self.memory else {}
        return dict.fromkeys(names, ids) | more, ids


def next_token_model(model):
    """A model of the same weights that is told the next tokens, and predicts no more than it must.

    Args:
        model: a `TextModel` with the head "causal_lm".

    Returns:
        A functional `keras.Model` with one more input, `next_token_ids` (B, L), to `logits`
        (B, L, V), or of an adaptive softmax to `log_probabilities` (B, L) of those tokens alone;
        and to the next `memory` where it takes one.
    """
    labels = keras.Input((None,), dtype="int32", name=NEXT)
    outputs = {name: x for name, x in model.output.items() if name in ("logits", "memory")}
    if config_of(model).adaptive_softmax:
        del outputs["logits"]
        outputs["log_probabilities"] = _of_labels(model, labels)
    return keras.Model(model.input | {NEXT: labels}, outputs, name=model.name)


def _of_labels(model, labels):
    """The log-probabilities (B, L) of labels alone, from a model's adaptive softmax."""
    config, softmax = config_of(model), model.get_layer("lm_softmax")
    states, *shared = keras.tree.flatten(softmax.input)
    count = len(config.cutoffs) + 1 if config.tie_embeddings else 0
    return softmax(states, shared[:count] or None, shared[count:] or None, labels=labels)
