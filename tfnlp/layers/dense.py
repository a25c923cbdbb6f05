"""A dense layer whose bias is added where the product is made."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("tfnlp")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense` over the last axis, with one pass less in training.

    TensorFlow fuses a product and its bias only where nothing stands between them, not even the
    reshape of three axes to two and back; so in training the rows are flat until both are done.

    Call arguments:
        inputs: (..., D).
        training: whether to do so; inference keeps the form that TFLite knows.

    Returns:
        (..., units).
    """

    def call(self, inputs, training=None):
        if not training or len(inputs.shape) == 2:
            return super().call(inputs, training=training)
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        outputs = super().call(rows, training=training)
        return ops.reshape(outputs, (*ops.shape(inputs)[:-1], self.units))
