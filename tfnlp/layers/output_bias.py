"""The bias of a tied output."""

import keras


@keras.saving.register_keras_serializable("tfnlp")
class OutputBias(keras.layers.Layer):
    """Adds a learned number to each of the last axis' entries, such as a token's logit.

    Call arguments:
        inputs: (..., V).

    Returns:
        (..., V).
    """

    def build(self, input_shape):
        self.bias = self.add_weight(name="bias", shape=(input_shape[-1],), initializer="zeros")

    def call(self, inputs):
        return inputs + self.bias

    def compute_output_shape(self, input_shape):
        return input_shape

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask
