"""Causal language modelling.

Radford et al. 2018, 'GPT', eq. 1; with a memory across segments Dai et al. 2019, 'Transformer-XL',
section 3.2.
"""

import dataclasses
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.configs import family_name
from tfnlp.models import config_of
from tfnlp.objectives.lane_memory import check_memory, lane_inputs, lane_signature, with_memory
from tfnlp.objectives.objective import Objective, token_scores
from tfnlp.objectives.token_stream import StreamBatches, as_inputs
from tfnlp.text.batches import IGNORED
from tfnlp.utils.errors import InputError
from tfnlp.weighted_losses import cross_entropy, weighted_mean

# The input with the next token of each position. With a large adaptive softmax, only its
# probability is computed.
NEXT = "next_token_ids"
# The count that is added to that of each token, to smooth the bias.
ADDED = 0.1


@dataclasses.dataclass(frozen=True)
class CausalLM(Objective):
    """Causal LM objective: predict the next token at every position of a stream of documents.

    The loss is the mean of -log p(x_{t+1} | x_1, ..., x_t) over all positions t (Radford et al.
    2018, eq. 1).

    Args:
        memory: whether each lane of the batch continues from segment to segment, with a memory
            (Transformer-XL) or with its state (a recurrent network: truncated backpropagation).
            The model must come from `build_model(memory=True)`. If False, segments are independent
            examples in random order.
    """

    memory: bool = False

    head: ClassVar[str] = "causal_lm"
    loss_name: ClassVar[str] = "causal_lm_loss"

    def check(self, config, tokenizer):
        """Raise an InputError for a family that is not a causal LM, or lacks the memory."""
        if config.language_model != self.head:
            raise InputError(
                f"Causal language modelling does not fit the family {family_name(config)!r}, "
                "whose tokens see those after them; give a GPT, a GPT-2, a Transformer-XL or a "
                "recurrent network of one direction."
            )
        if self.memory:
            check_memory(config, "memory=True")

    def initialise_head(self, model, batches):
        """Initialise a new output bias to the log of each token's share of the text.

        From zero, a short training leaves much probability on tokens that never occur. A bias that
        is not zero counts as trained, and stays.

        Args:
            model: a `TextModel` with the head "causal_lm".
            batches: the `CausalBatches` to train on.
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
        """Return the model to fit, which shares the weights of `model`.

        Args:
            model: a `TextModel` with the head "causal_lm".
            batch_size: with memory, the number of lanes over all devices.

        Returns:
            A `keras.Model` from the inputs of the batches to `logits` (B, L, V). With an adaptive
            softmax the output is `log_probabilities` (B, L) of the next tokens instead.
        """
        if ("memory" in model.input) != self.memory:
            raise InputError(
                f"memory={self.memory} does not fit model {model.name}, which was built "
                f"with{'out' if self.memory else ''} memory; build it with memory={self.memory}."
            )
        inner = next_token_model(model)
        return with_memory(inner, config_of(model), batch_size) if self.memory else inner

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the `CausalBatches` of a corpus."""
        return CausalBatches(
            corpus,
            tokenizer,
            batch_size,
            max_length,
            seed=seed,
            shuffle=shuffle,
            memory=self.memory,
        )

    def losses(self, labels, outputs, sample_weight=None):
        """Return the mean cross-entropy of the next tokens (B, L), ignoring -100."""
        if "logits" in outputs:  # (B, L, V)
            loss = cross_entropy(labels, outputs["logits"], sample_weight)
        else:  # log-probabilities (B, L) of the next tokens, from an adaptive softmax
            real = ops.not_equal(labels, IGNORED)
            loss = weighted_mean(-outputs["log_probabilities"], real, sample_weight)
        return {self.loss_name: loss}

    def scores(self, labels, outputs):
        """Return the log-likelihood of the next tokens and, if there are logits, the accuracy."""
        if "logits" in outputs:
            return token_scores(labels, outputs)
        real = ops.cast(ops.not_equal(labels, IGNORED), "float32")
        total = ops.sum(outputs["log_probabilities"] * real)
        return {"log_likelihood": (total, ops.sum(real))}


class CausalBatches(StreamBatches):
    """Segments of a stream, with the next tokens as labels.

    With memory the stream is cut into as many lanes as the batch has rows, and segment t + 1 of a
    lane continues segment t. The remainder of the division by the number of lanes is left out at
    the end. Without memory, segments are examples in random order. The last segment of a lane, or
    of the stream, may be short; its padding has the label -100.

    Args:
        corpus, tokenizer, batch_size, max_length, seed, shuffle: as in `StreamBatches`.
        memory: whether the stream is cut into lanes.

    Raises:
        InputError: if there are too few tokens.
    """

    def __init__(
        self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True, memory=False
    ):
        super().__init__(corpus, tokenizer, batch_size, max_length, seed=seed, shuffle=shuffle)
        self.memory = memory
        lanes = batch_size if memory else 1
        batch = f"{batch_size} lanes of max_length={max_length}" if memory else "a segment"
        self.check_tokens(lanes * max_length + 1, f"{batch} and the token after")
        # The last token of the stream is only a label.
        self.lane_size = (self.tokens - 1) // lanes
        self.rows = lanes * -(-self.lane_size // max_length)

    @property
    def lengths(self):
        """The number of tokens of each example of an epoch; the last of a lane may be shorter."""
        lanes = self.batch_size if self.memory else 1
        begins = np.arange(0, self.lane_size, self.max_length)
        return np.repeat(np.minimum(self.lane_size - begins, self.max_length), lanes)

    def settings(self):
        """Return the settings beyond those of all streams, for the fingerprint."""
        return [self.memory]

    def epoch(self, epoch=0, skip=0):
        """Yield the batches of an epoch, without the first `skip`."""
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
        ids = np.full((len(starts), self.max_length), self.pad_token_id, "int32")  # (B, L)
        mask, labels = np.zeros_like(ids), np.full_like(ids, IGNORED)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            tokens = stream.read(start, min(start + self.max_length, end) + 1)
            size = len(tokens) - 1
            ids[row, :size], labels[row, :size] = tokens[:-1], tokens[1:]
            mask[row, :size] = 1
        # A copy, as TensorFlow may write over an array that it receives twice.
        inputs = as_inputs(ids) | {"padding_mask": mask, NEXT: labels.copy()}
        if self.memory:
            inputs |= lane_inputs(len(ids), continues)
        return inputs, labels

    def signature(self):
        """Return the `tf.TensorSpec`s of a batch."""
        ids = tf.TensorSpec((None, self.max_length), "int32")
        names = ("token_ids", "segment_ids", "padding_mask", NEXT)
        more = lane_signature() if self.memory else {}
        return dict.fromkeys(names, ids) | more, ids


def next_token_model(model):
    """Return a model with the same weights that receives the next tokens as an input.

    With an adaptive softmax it computes the probabilities of those tokens alone.

    Args:
        model: a `TextModel` with the head "causal_lm".

    Returns:
        A functional `keras.Model` with the extra input `next_token_ids` (B, L). Its output is
        `logits` (B, L, V), or with an adaptive softmax `log_probabilities` (B, L) of those tokens;
        and the next `memory` if the model takes one.
    """
    labels = keras.Input((None,), dtype="int32", name=NEXT)
    outputs = {name: x for name, x in model.output.items() if name in ("logits", "memory")}
    if config_of(model).adaptive_softmax:
        del outputs["logits"]
        outputs["log_probabilities"] = _label_log_probabilities(model, labels)
    return keras.Model(model.input | {NEXT: labels}, outputs, name=model.name)


def _label_log_probabilities(model, labels):
    """Return the log-probabilities (B, L) of the labels from a model's adaptive softmax."""
    config, softmax = config_of(model), model.get_layer("lm_softmax")
    states, *shared = keras.tree.flatten(softmax.input)
    count = len(config.cutoffs) + 1 if config.tie_embeddings else 0
    return softmax(states, shared[:count] or None, shared[count:] or None, labels=labels)
