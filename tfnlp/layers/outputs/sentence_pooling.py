"""One vector for the states of a text."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.poolings import POOLINGS
from tfnlp.layers.core.base_layer import BaseLayer, check_choices
from tfnlp.layers.core.weight_options import LayerOptions


@keras.saving.register_keras_serializable("tfnlp")
class SentencePooling(BaseLayer):
    """One vector (B, D) for the states of each row's real tokens; of several modes (B, M * D).

    Reimers & Gurevych 2019, 'Sentence-BERT', section 3.

    Args:
        modes: a tuple of "first" and "last" for the state of that token, "max", "mean",
            "mean_sqrt_length" for the sum divided by the root of the number of tokens, and
            "weighted_mean" for a mean in which the i-th token has the weight i.

    Call arguments:
        inputs: (B, L, D).
        padding_mask: (B, L), 1 at real tokens, which come first.

    Returns:
        (B, M * D) float32, the modes in the order of `modes`. That of no token is 0.

    Raises:
        ValueError: for an unknown mode.
    """

    keeps_positions = False

    def __init__(self, modes=("mean",), **kwargs: Unpack[LayerOptions]):
        super().__init__(**kwargs)
        check_choices("modes", modes, POOLINGS)
        self.modes = tuple(modes)

    def call(self, inputs, padding_mask):
        vectors = (POOLINGS[mode](inputs, padding_mask) for mode in self.modes)
        vectors = [ops.cast(vector, "float32") for vector in vectors]
        x = vectors[0] if len(vectors) == 1 else ops.concatenate(vectors, axis=-1)
        length = ops.sum(ops.cast(padding_mask, "float32"), axis=1, keepdims=True)
        return x * ops.minimum(length, 1)

    def compute_output_spec(self, inputs, padding_mask):
        shape = inputs.shape[0], inputs.shape[2] * len(self.modes)
        return keras.KerasTensor(shape, dtype="float32")
