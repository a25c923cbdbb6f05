"""Positions as sinusoids, added to a sequence."""

import keras
from keras import ops

from tfnlp.layers.core.positions import sinusoids


@keras.saving.register_keras_serializable("tfnlp")
class SinusoidalPositionEncoding(keras.layers.Layer):
    """Adds sinusoids of the position (Vaswani et al. 2017, section 3.5).

    Args:
        max_wavelength: the longest wavelength, in multiples of 2 pi.
        interleaved: sin, cos, sin, cos ...; else all sines, then all cosines.

    Call arguments:
        inputs: (B, L, D), D even.

    Returns:
        (B, L, D).

    Raises:
        ValueError: at build, if D is odd.
    """

    def __init__(self, max_wavelength=10000.0, interleaved=True, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.max_wavelength = max_wavelength
        self.interleaved = interleaved

    def build(self, input_shape):
        if input_shape[-1] % 2:
            raise ValueError(
                f"inputs have width {input_shape[-1]}, but sinusoids need an even one."
            )

    def call(self, inputs):
        length, dim = ops.shape(inputs)[1:]
        encoding = sinusoids(ops.arange(length), dim, self.max_wavelength, self.interleaved)
        return inputs + ops.cast(encoding, inputs.dtype)[None]

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {
            "max_wavelength": self.max_wavelength,
            "interleaved": self.interleaved,
        }
