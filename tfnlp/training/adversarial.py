"""Virtual adversarial fine-tuning: the same answer for slightly moved embeddings (SiFT)."""

import keras
import tensorflow as tf
from keras import ops

# Added to variances, and to the largest entry of a gradient.
EPSILON = 1e-6


class AdversarialRegularizer:
    """How much a model's outputs change when its embeddings move the worst way.

    He et al. 2020, 'DeBERTa', section 4 (scale-invariant fine-tuning), in the form of its code
    release; Jiang et al. 2020, 'SMART', eq. 1; Miyato et al. 2018 for the gradient step. Each
    token's embedding is normalised to mean 0 and variance 1, moved there, and scaled back, so
    that a step means the same for every model: a random start, then one step along the
    gradient of the divergence. The loss is the symmetric divergence of the outputs.

    Args:
        model: from `tfnlp.models.build_model`.
        outputs: the names of the outputs to compare.
        weight: of the loss.
        step_size: of the gradient step, in standard deviations of an embedding.
        start: standard deviation of the random start, likewise; cut at twice of it.
        seed: of the random start.
    """

    def __init__(self, model, outputs, weight, step_size=1e-4, start=1e-2, seed=0):
        # Transformer-XL's layer gives its tables too.
        x = keras.tree.flatten(model.get_layer("embeddings").output)[0]
        self.embed = keras.Model(model.input, x)
        self.rest = keras.Model([x, model.input], {key: model.output[key] for key in outputs})
        self.regression = model.output[outputs[0]].shape[-1] == 1
        self.weight = weight
        self.step_size = step_size
        self.start = start
        self.seed_generator = keras.random.SeedGenerator(seed)

    def __call__(self, inputs, outputs):
        """The loss of a batch.

        Args:
            inputs: of the model.
            outputs: what the model gave for them.
        """
        inputs = {key: ops.convert_to_tensor(value) for key, value in inputs.items()}
        x = ops.stop_gradient(self.embed(inputs, training=True))  # (B, L, D)
        x = ops.cast(x, "float32")
        scale = ops.sqrt(ops.var(x, axis=-1, keepdims=True) + EPSILON)  # (B, L, 1)
        move = self.start * keras.random.normal(ops.shape(x), seed=self.seed_generator)
        move = ops.clip(move, -2 * self.start, 2 * self.start)
        fixed = {key: ops.stop_gradient(value) for key, value in outputs.items()}
        with tf.GradientTape() as tape:
            tape.watch(move)
            moved = self.rest([x + scale * move, inputs], training=True)
            loss = self._divergence(moved, fixed, inputs)
        gradient = tape.gradient(loss, move)
        largest = ops.max(ops.abs(gradient), axis=-1, keepdims=True)
        move = ops.stop_gradient(move + self.step_size * gradient / (largest + EPSILON))
        moved = self.rest([x + scale * move, inputs], training=True)
        return self.weight * self._divergence(moved, outputs, inputs)

    def _divergence(self, a, b, inputs):
        losses = [self._one_divergence(a[key], b[key], inputs) for key in a]
        return sum(losses) / len(losses)

    def _one_divergence(self, a, b, inputs):
        a, b = ops.cast(a, "float32"), ops.cast(b, "float32")
        if self.regression:
            return keras.losses.MeanSquaredError()(b, a)
        log_a, log_b = ops.log_softmax(a), ops.log_softmax(b)
        # KL(b, a) + KL(a, b). Each pulls on the answer that it is measured on, towards the other
        # as it is: the gradient of the release's two cross-entropies, which are not 0 where
        # both agree.
        distance = ops.stop_gradient(ops.exp(log_b) - ops.exp(log_a))
        both = ops.sum(distance * (log_b - log_a), axis=-1)  # (B,) or (B, L)
        if len(both.shape) == 1:
            return _mean(both, ops.ones_like(both))
        return _mean(both, ops.cast(inputs["padding_mask"], "float32"))


def _mean(values, weights):
    """The mean over real entries; under a strategy each device's share of it."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    # A device's share of the last batch can be empty: 0 then, not NaN.
    return ops.sum(values * weights) / ops.maximum(ops.sum(weights), 1.0) / replicas
