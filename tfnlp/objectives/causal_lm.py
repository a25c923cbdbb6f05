"""Causal language modelling.

Radford et al. 2018, 'GPT', eq. 1; with a memory across segments Dai et al. 2019, 'Transformer-XL',
section 3.2.
"""

import dataclasses
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from tfnlp.functional.weighted_losses import cross_entropy, weighted_mean
from tfnlp.models import config_of
from tfnlp.objectives.batches.lane_memory import WithLaneMemory, check_memory
from tfnlp.objectives.batches.token_stream import StreamBatches, as_inputs
from tfnlp.objectives.objective import Objective
from tfnlp.text.batching.batches import IGNORED
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import setting

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
        packing: "joined", where a segment sees what stands before in it, of other documents too;
            or "masked", where each document sees itself alone, from the end token before it.
    """

    memory: bool = False
    packing: str = setting("joined", "Packing of documents.", choices=("joined", "masked"))

    head: ClassVar[str] = "causal_lm"
    loss_name: ClassVar[str] = "causal_lm_loss"

    def check(self, config, tokenizer):
        """Raise an InputError for a family that is not a causal LM, or lacks the memory."""
        super().check(config, tokenizer)
        if self.packed and self.memory:
            raise InputError(
                "packing=masked does not go with a memory, which goes on from document to "
                "document; leave out one of them."
            )
        if self.memory:
            check_memory(config, "memory=True")

    def initialise_head(self, model, batches):
        """Initialise a new output bias to the log of each token's share of the text.

        From zero, a short training leaves much probability on tokens that never occur. A bias that
        is not zero counts as trained, and stays.
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
        """Return the model to fit, from the inputs of the batches to `logits` (B, L, V).

        With an adaptive softmax the output is `log_probabilities` (B, L) of the next tokens.
        """
        inner = next_token_model(model)
        return WithLaneMemory(inner, config_of(model), batch_size) if self.memory else inner

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the `CausalBatches` of a corpus."""
        options = {"seed": seed, "shuffle": shuffle, "memory": self.memory}
        arguments = corpus, tokenizer, batch_size, max_length
        return CausalBatches(*arguments, packed=self.packed, **options)

    def losses(self, labels, outputs, sample_weight=None):
        """Return the mean cross-entropy of the next tokens (B, L), ignoring -100."""
        if "logits" in outputs:  # (B, L, V)
            loss = cross_entropy(labels, outputs["logits"], sample_weight)
        else:  # log-probabilities (B, L) of the next tokens, from an adaptive softmax
            real = ops.not_equal(labels, IGNORED)
            loss = weighted_mean(-outputs["log_probabilities"], real, sample_weight)
        return {self.loss_name: loss}


class CausalBatches(StreamBatches):
    """Segments of a stream, with the next tokens as labels.

    With memory segment t + 1 of a lane continues segment t. The remainder of the division by the
    number of lanes is left out at the end. The last segment of a lane, or of the stream, may be
    short; its padding has the label -100.

    Args:
        corpus, tokenizer, batch_size, max_length, options: as in `StreamBatches`.
        packed: whether there are `positions` too, which begin at 0 with each document.

    Raises:
        InputError: if there are too few tokens.
    """

    def __init__(self, corpus, tokenizer, batch_size, max_length, packed=False, **options):
        super().__init__(corpus, tokenizer, batch_size, max_length, **options)
        self.packed = packed
        self.settings = ("packed",) * packed
        self.lanes = batch_size if self.memory else 1
        lanes = f"{batch_size} lanes of max_length={max_length}" if self.memory else "a segment"
        self.check_tokens(self.lanes * max_length + 1, f"{lanes} and the token after")
        # The last token of the stream is only a label.
        self.lane_size = (self.tokens - 1) // self.lanes
        self.rows = self.lanes * -(-self.lane_size // max_length)

    @property
    def lengths(self):
        """The number of tokens of each example of an epoch; the last of a lane may be shorter."""
        starts, ends = self._bounds(np.arange(self.rows))
        return ends - starts

    def _bounds(self, examples):
        """Return the starts of examples in the stream, and their ends."""
        segment, lane = np.divmod(examples, self.lanes)
        starts = lane * self.lane_size + segment * self.max_length
        return starts, np.minimum(starts + self.max_length, (lane + 1) * self.lane_size)

    def batch(self, stream, examples, rng):
        ids = np.full((len(examples), self.max_length), self.pad_token_id, "int32")  # (B, L)
        mask, labels = np.zeros_like(ids), np.full_like(ids, IGNORED)
        for row, (start, end) in enumerate(zip(*self._bounds(examples), strict=True)):
            tokens, size = stream.read(start, end + 1), end - start
            ids[row, :size], labels[row, :size] = tokens[:-1], tokens[1:]
            mask[row, :size] = 1
        inputs = as_inputs(ids) | {"padding_mask": mask}
        if self.packed:
            inputs["positions"] = self._positions(stream, examples, labels)
        # A copy, as TensorFlow may write over an array that it receives twice.
        return inputs | {NEXT: labels.copy()}, labels

    def _positions(self, stream, examples, labels):
        """Return the position of each token in its document, or in the part that the row holds.

        A document begins with the end token before it. Without end tokens nothing tells the first
        token of a document, whose label goes.
        """
        positions = np.zeros_like(labels)
        for row, (start, end) in enumerate(zip(*self._bounds(examples), strict=True)):
            starts = stream.document_starts(start, end + 1) - start  # the last label's too
            if self.end_token_id is None:
                labels[row, starts - 1] = IGNORED
            starts = starts[starts < end - start]
            begins = np.zeros(end - start, "int32")
            begins[starts] = starts
            positions[row, : end - start] = np.arange(end - start) - np.maximum.accumulate(begins)
        return positions


def next_token_model(model):
    """Return a causal LM with the same weights and the further input `next_token_ids` (B, L).

    Its outputs are `logits` (B, L, V), or with an adaptive softmax `log_probabilities` (B, L) of
    those tokens alone; and the next `memory` if the model takes one.
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
