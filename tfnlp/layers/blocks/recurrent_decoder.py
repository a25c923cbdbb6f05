"""The decoder of a recurrent encoder-decoder, with or without attention."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.attention import masked_softmax
from tfnlp.functional.shapes import check_sizes
from tfnlp.layers.attention.score_attention import ScoreAttention
from tfnlp.layers.core.base_layer import BaseLayer, check_choice
from tfnlp.layers.core.weight_options import LayerOptions

# The class of each cell, and its number of states.
CELLS = {
    "rnn": (keras.layers.SimpleRNNCell, 1),
    "lstm": (keras.layers.LSTMCell, 2),
    "gru": (keras.layers.GRUCell, 1),
}


@keras.saving.register_keras_serializable("tfnlp")
class RecurrentDecoderBlock(BaseLayer):
    """Stacked recurrent cells that read a target and attend to a source.

    Luong et al. 2015, sections 3.1 and 3.3 (global attention): the upper cell's state h_t attends
    to the source's states, and the output is tanh(W [context; h_t]) (eq. 5); with input feeding
    the next token is read beside it. Without attention the output is h_t (Sutskever et al. 2014).

    Args:
        units: D, of each cell and of the output.
        num_layers: the number of cells.
        cell: "rnn", "lstm" or "gru".
        score: of its `ScoreAttention`: "dot", "general" or "concat"; None for no attention.
        input_feeding: whether each token is read beside the output before it, at first zeros; of
            a decoder with attention.
        dropout: applied between cells in training.

    Call arguments:
        inputs: (B, T, E), embeddings of the target.
        initial_state: (B, num_layers, S, D), the initial S states of each cell: of an LSTM h
            and c, of the others h.
        value: (B, L, D'), the source's states; None without attention.
        source_mask: (B, L), 1 at the source's real tokens.
        feed_predictions: scheduled sampling (Bengio et al. 2015, section 2.4), a tuple: (B, T), 1
            where the decoder reads the token that is best after the output before it in place of
            the input (nothing is before the first); (V, E), the embedding of each token; (D, V),
            by which outputs become logits.
        training: whether dropout is on.

    Returns:
        The outputs (B, T, D); with attention a pair of them and the weights (B, T, L).

    Raises:
        ValueError: for an unknown cell or score, and no layer.
    """

    def __init__(
        self,
        units,
        num_layers=1,
        cell="lstm",
        score="general",
        input_feeding=True,
        dropout=0.0,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        self.units = units
        self.num_layers = num_layers
        self.cell = cell
        self.score = score
        self.input_feeding = input_feeding
        self.dropout = dropout
        check_choice("cell", cell, CELLS)
        check_sizes(num_layers=num_layers)
        make, self.num_states = CELLS[cell]
        self.cells = [
            make(units, dtype=self.dtype_policy, name=f"cell_{i}") for i in range(num_layers)
        ]
        self.dropout_layer = self._dropout_layer(dropout)
        self.attention = self.combine = None
        if score is not None:
            self.attention = ScoreAttention(score, dtype=self.dtype_policy, name="attention")
            self.combine = keras.layers.Dense(
                units, "tanh", use_bias=False, dtype=self.dtype_policy, name="combine"
            )

    def build(self, inputs_shape, initial_state_shape=None, value_shape=None, *_, **__):
        width = inputs_shape[-1] + self.input_feeding * self.units
        for cell in self.cells:
            cell.build((None, width))
            width = self.units
        if self.attention is not None:
            self.attention.build((None, None, self.units), value_shape)
            self.combine.build((None, None, value_shape[-1] + self.units))

    def call(
        self,
        inputs,
        initial_state,
        value=None,
        source_mask=None,
        feed_predictions=None,
        training=None,
    ):
        source = self.prepare(value, source_mask)
        states = tuple(
            ops.cast(initial_state[:, i, k], self.compute_dtype)
            for i in range(self.num_layers)
            for k in range(self.num_states)
        )
        zeros = ops.zeros_like(states[0])
        scores = zeros[:, :0] if source is None else ops.zeros_like(source[0][:, :, 0])
        inputs = ops.cast(inputs, self.compute_dtype)
        width, one = inputs.shape[-1], ops.ones_like(inputs[..., :1])
        # As one tensor: with TensorFlow, Keras cannot scan several of unknown length.
        steps = [inputs]
        drops = training and self.dropout and self.num_layers > 1
        if drops:
            kept = ops.repeat(one, (self.num_layers - 1) * self.units, axis=-1)
            steps.append(self.dropout_layer(kept, training=True))
        if feed_predictions is not None:
            fed, token_rows, output_matrix = (
                ops.cast(x, self.compute_dtype) for x in feed_predictions
            )
            # Before the first token the decoder has predicted none.
            steps.append(ops.concatenate([0 * one[:, :1], fed[:, 1:, None]], axis=1))
        steps = steps[0] if len(steps) == 1 else ops.concatenate(steps, axis=-1)

        def step(carry, inputs):
            states, output, _ = carry
            x, kept = inputs[:, :width], inputs[:, width:] if drops else None
            if feed_predictions is not None:
                best = ops.argmax(ops.matmul(output, output_matrix), axis=-1)
                x = ops.where(inputs[:, -1:] > 0, ops.take(token_rows, best, axis=0), x)
            carry = self.step(x, states, output, source, kept)
            return carry, carry

        first = (states, zeros, scores)
        _, (_, outputs, scores) = ops.scan(step, first, ops.swapaxes(steps, 0, 1))
        outputs = ops.swapaxes(outputs, 0, 1)
        if source is None:
            return outputs
        mask = None if source[2] is None else source[2][:, None, None]
        scores = ops.swapaxes(scores, 0, 1)[:, None]  # (B, 1, T, L)
        return outputs, masked_softmax(scores, mask)[:, 0]

    def prepare(self, value, source_mask=None):
        """Return the source's states, keys (B, L, ...) and mask; None without attention."""
        if self.attention is None:
            return None
        value = ops.cast(value, self.compute_dtype)
        mask = None if source_mask is None else ops.cast(source_mask, "bool")
        return value, self.attention.project_keys(value), mask

    def step(self, x, states, output, source, kept=None):
        """Read one token of each target.

        Args:
            x: (R, E); R is B, or B * K where each source has K targets, side by side.
            states: a tuple of (R, D), those of each cell in turn.
            output: (R, D), of the token before; zeros before the first.
            source: the result of `prepare` for B sources.
            kept: (R, (num_layers - 1) * D), the dropout mask between cells; None without one.

        Returns:
            The new states, the output (R, D), and the scores (R, L) before the softmax, (R, 0)
            without attention.
        """
        if self.input_feeding:
            x = ops.concatenate([x, output], axis=-1)
        new_states = []
        for i, cell in enumerate(self.cells):
            cell_states = states[i * self.num_states : (i + 1) * self.num_states]
            x, cell_states = cell(x, list(cell_states))
            new_states += cell_states
            if kept is not None and i + 1 < self.num_layers:
                x = x * kept[:, i * self.units : (i + 1) * self.units]
        if source is None:
            return tuple(new_states), x, x[:, :0]
        value, keys, mask = source
        query = ops.reshape(x, (ops.shape(value)[0], -1, self.units))  # (B, K, D)
        context, scores = self.attention(
            query,
            value,
            keys,
            attention_mask=None if mask is None else mask[:, None],
            keys_projected=True,
            return_attention_scores=True,
        )
        context = ops.reshape(context, (-1, value.shape[-1]))
        scores = ops.reshape(scores, (-1, ops.shape(scores)[-1]))
        return tuple(new_states), self.combine(ops.concatenate([context, x], axis=-1)), scores

    def compute_output_spec(self, inputs, initial_state, value=None, *args, **kwargs):
        outputs = (*inputs.shape[:2], self.units)
        if self.attention is None:
            return self._specs(outputs)
        return self._specs(outputs, (*inputs.shape[:2], value.shape[1]))
