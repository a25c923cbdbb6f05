"""Positions as sinusoids, added to a sequence."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.positions import check_length, sinusoid_table, sinusoids
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import LayerOptions


@keras.saving.register_keras_serializable("tfnlp")
class SinusoidalPositionEncoding(BaseLayer):
    """Sinusoidal position encoding, added to the inputs (Vaswani et al. 2017, section 3.5).

    Args:
        max_wavelength: the longest wavelength, in multiples of 2 pi.
        interleaved: sin, cos, sin, cos ...; else all sines, then all cosines.
        scale: by which the inputs are multiplied first; sqrt(D) in the paper (section 3.4).
        max_length: the longest input there can be, whose sinusoids are then computed once, in
            double precision; None for any length, in single precision.

    Call arguments:
        inputs: (B, L, D), D even.
        positions: (B, L) integers, below `max_length` where there is one; 0 to L - 1 if None.

    Returns:
        (B, L, D).

    Raises:
        ValueError: if D is odd; for a known length above `max_length`.
    """

    def __init__(
        self,
        max_wavelength=10000.0,
        interleaved=True,
        scale=1.0,
        max_length=None,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        self.max_wavelength = max_wavelength
        self.interleaved = interleaved
        self.scale = scale
        self.max_length = max_length

    def build(self, input_shape):
        if self.max_length is not None:
            self._rows = sinusoid_table(
                self.max_length, input_shape[-1], self.max_wavelength, self.interleaved
            )

    def call(self, inputs, positions=None):
        inputs = check_length("inputs", inputs, self.max_length)
        length, dim = ops.shape(inputs)[1], inputs.shape[-1]
        rows = ops.arange(length) if positions is None else positions
        if self.max_length is not None:
            encoding = ops.take(self._rows, rows, axis=0)
        else:
            flat = ops.reshape(rows, (-1,))
            encoding = sinusoids(flat, dim, self.max_wavelength, self.interleaved)
            encoding = ops.reshape(encoding, (*ops.shape(rows), dim))
        encoding = encoding[None] if positions is None else encoding
        inputs = inputs if self.scale == 1 else inputs * self.scale
        return inputs + ops.cast(encoding, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape
