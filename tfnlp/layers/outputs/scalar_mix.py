"""Weighted sum of the layers of a pretrained model."""

import keras
from keras import ops

from tfnlp.layers.core.base_layer import BaseLayer


@keras.saving.register_keras_serializable("tfnlp")
class ScalarMix(BaseLayer):
    """Weighted sum of layers, which a task learns: gamma * sum_j s_j h_j.

    Peters et al. 2018, 'Deep Contextualized Word Representations', eq. 1, without the optional
    normalisation of layers; s is a softmax of weights that start at 0, and gamma starts at 1.

    Call arguments:
        inputs: (..., K, D), the states of K layers.

    Returns:
        (..., D).
    """

    def build(self, shape):
        size = (shape[-2],)
        self.mix_weights = self.add_weight(name="mix_weights", shape=size, initializer="zeros")
        self.gamma = self.add_weight(name="gamma", shape=(1,), initializer="ones")

    def shares(self):
        """Return s, (K,), which sum to 1."""
        return ops.softmax(self.mix_weights)

    def call(self, inputs):
        return self.gamma * ops.sum(inputs * self.shares()[:, None], axis=-2)

    def compute_output_spec(self, inputs):
        return self._specs((*inputs.shape[:-2], inputs.shape[-1]))
