"""Rotary positions."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.positions import sines_and_cosines
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import LayerOptions


@keras.saving.register_keras_serializable("tfnlp")
class RotaryEmbedding(BaseLayer):
    """Rotation of queries and keys by angles that grow with the position.

    Su et al. 2021, 'RoFormer', eq. 13 for one pair of features, eq. 34 for all: pair i at position
    m turns by m * theta^(-2 i / H). The product of a query and a key then depends on the distance
    of their positions alone (eq. 16). A pair are features i and i + H / 2, as checkpoints have it;
    the paper has neighbours, which is another order of the features.

    Args:
        theta: base of the wavelengths, the longest of which is nearly 2 pi theta positions.

    Call arguments:
        inputs: queries or keys by head, (B, N, L, H), of positions 0 to L - 1.

    Returns:
        (B, N, L, H) of the type of the inputs; computed in float32.

    Raises:
        ValueError: at the call, if H is odd.
    """

    def __init__(self, theta=10000.0, **kwargs: Unpack[LayerOptions]):
        super().__init__(**kwargs)
        self.theta = theta
        self.autocast = False  # of the type of its attention, whose part it is

    def call(self, inputs):
        length, size = ops.shape(inputs)[-2:]
        sine, cosine = sines_and_cosines(ops.arange(length), size, self.theta)  # (L, H / 2)
        first, second = ops.split(ops.cast(inputs, "float32"), 2, axis=-1)
        turned = (first * cosine - second * sine, second * cosine + first * sine)
        return ops.cast(ops.concatenate(turned, axis=-1), inputs.dtype)

    def compute_output_spec(self, inputs):
        return keras.KerasTensor(inputs.shape, dtype=inputs.dtype)
