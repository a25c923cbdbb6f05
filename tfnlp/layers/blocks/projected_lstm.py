"""LSTM with a projected state."""

from typing import Unpack

import keras
import numpy as np
from keras import ops

from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import BiasPenalties, KernelOptions


class LSTMOptions(KernelOptions, BiasPenalties, total=False):
    """Options of a `ProjectedLSTM`, whose bias starts at numbers of its own."""


@keras.saving.register_keras_serializable("tfnlp")
class ProjectedLSTM(BaseLayer):
    """LSTM whose output is a projection of its cells, which it reads in the next step.

    Sak et al. 2014, 'Long Short-Term Memory Based Recurrent Neural Network Architectures', without
    peepholes, as ELMo's language model has it: (i, f, g, o) = W x_t + U h_{t-1} + b,
    c_t = clip(sigmoid(f) * c_{t-1} + sigmoid(i) * tanh(g)) and
    h_t = clip(P (sigmoid(o) * tanh(c_t))).

    Args:
        units: C, the number of cells.
        projection_dim: P, the width of the output.
        clip: limit of the absolute values of cells and outputs; None for none.
        go_backwards: whether to read from the last position to the first; outputs stay in the
            order of the inputs.
        kernel_initializer, kernel_regularizer, kernel_constraint: for the kernels.
        bias_regularizer, bias_constraint: for the bias, which starts at 1 for the forget gate.

    Call arguments:
        inputs: (B, L, D).
        mask: (B, L), true at real positions; at others the state stays as it is. The Keras mask of
            the inputs if None.

    Returns:
        (B, L, P).
    """

    def __init__(
        self,
        units,
        projection_dim,
        clip=None,
        go_backwards=False,
        **kwargs: Unpack[LSTMOptions],
    ):
        super().__init__(**kwargs)
        self.units = units
        self.projection_dim = projection_dim
        self.clip = clip
        self.go_backwards = go_backwards

    def build(self, inputs_shape, mask_shape=None):
        units, width = self.units, self.projection_dim
        kernel = self.kernel_initializer
        self.kernel = self._weight("kernel", "kernel", (inputs_shape[-1], 4 * units), kernel)
        self.recurrent = self._weight("kernel", "recurrent_kernel", (width, 4 * units), kernel)
        self.projection = self._weight("kernel", "projection_kernel", (units, width), kernel)
        open_gate = keras.initializers.Constant(np.repeat([0.0, 1.0, 0.0, 0.0], units))
        self.bias = self._weight("bias", "bias", (4 * units,), open_gate)

    def call(self, inputs, mask=None):
        steps = ops.matmul(inputs, self.kernel) + self.bias  # (B, L, 4C)
        cells = ops.zeros_like(steps[:, 0, : self.units])
        first = cells, ops.zeros_like(ops.matmul(cells, self.projection))
        if mask is not None:
            real = ops.cast(mask, steps.dtype)[..., None]
            steps = ops.concatenate([steps, real], axis=-1)
        steps = ops.swapaxes(steps, 0, 1)
        steps = ops.flip(steps, axis=0) if self.go_backwards else steps

        def step(states, gates):
            cells, outputs = states
            new = self._step(cells, outputs, gates[:, : 4 * self.units])
            if mask is not None:
                new = (
                    ops.where(gates[:, -1:] > 0, x, before)
                    for x, before in zip(new, states, strict=True)
                )
            new = tuple(new)
            return new, new  # with TensorFlow, Keras scans into tensors like the states alone

        _, (_, outputs) = ops.scan(step, first, steps)  # (L, B, P)
        outputs = ops.flip(outputs, axis=0) if self.go_backwards else outputs
        return ops.swapaxes(outputs, 0, 1)

    def _step(self, cells, outputs, gates):
        """Return the cells (B, C) and the outputs (B, P) after one position."""
        i, f, g, o = ops.split(gates + ops.matmul(outputs, self.recurrent), 4, axis=-1)
        cells = self._clipped(ops.sigmoid(f) * cells + ops.sigmoid(i) * ops.tanh(g))
        return cells, self._clipped(ops.matmul(ops.sigmoid(o) * ops.tanh(cells), self.projection))

    def _clipped(self, x):
        return x if self.clip is None else ops.clip(x, -self.clip, self.clip)

    def compute_output_spec(self, inputs, mask=None):
        return self._specs((*inputs.shape[:2], self.projection_dim))
