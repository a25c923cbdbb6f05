"""Dense layer with a fused bias."""

import keras
from keras import ops

from tfnlp.functional.shapes import reshape
from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.quantization.fake_quantization import TANH_RANGE, FakeQuantized
from tfnlp.quantization.rounded_products import rounded_dense

TANHS = (ops.tanh, keras.activations.tanh)


@keras.saving.register_keras_serializable("tfnlp")
class Dense(FakeQuantized, keras.layers.Dense):
    """`keras.layers.Dense` over the last axis, with the bias fused into the product.

    TensorFlow fuses a product and its bias only if nothing is between them, not even the reshape
    of three axes to two and back. So the rows stay flat until both are done. This also gives
    TFLite constant shapes for an unknown length.

    Call arguments:
        inputs: (..., D).
        training: as in `keras.layers.Dense`.

    Returns:
        (..., units).
    """

    def call(self, inputs, training=None):
        if len(inputs.shape) == 2:
            return self._product(inputs, training)
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        outputs = self._product(rows, training)
        return reshape(outputs, (*ops.shape(inputs)[:-1], self.units))

    def rounded_tensors(self):
        tanh = {"activations": TANH_RANGE} if self.activation in TANHS else {}
        return {"inputs": None, "outputs": None} | tanh

    def _product(self, rows, training):
        """Return activation(rows @ kernel + bias), (rows, units), for inputs (rows, D)."""
        if not self.is_fake_quantized:
            return super().call(rows, training=training)
        return rounded_dense(self, rows, training)

    def save_own_variables(self, store):
        if not self.lora_enabled or self.quantization_mode:
            super().save_own_variables(store)
            return
        # Keras merges in the compute dtype, which would round the weights of half precision.
        merged = merged_weights(self)
        variables = (self._kernel, self.bias) if self.use_bias else (self._kernel,)
        for place, variable in enumerate(variables):
            store[str(place)] = merged[variable.path]

    def quantize(self, mode=None, type_check=True, config=None):
        # Keras asks subclasses to opt in, as they may compute something else; this one does not.
        return super().quantize(mode, type_check=False, config=config)

    @property
    def is_plain(self):
        """Return whether calls are `inputs @ kernel + bias` alone, not rounded nor penalised."""
        return not (self.quantization_mode or self.activity_regularizer or self.is_fake_quantized)

    def float_kernel(self):
        """Return the float kernel (D, units), dequantised if `kernel` holds integers."""
        if self.quantization_mode is None:
            return self.kernel
        rows = self(ops.eye(self.input_spec.axes[-1], dtype=self.compute_dtype))
        return rows if self.bias is None else rows - self.bias
