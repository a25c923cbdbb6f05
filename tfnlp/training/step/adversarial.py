"""Virtual adversarial fine-tuning: equal outputs for slightly perturbed embeddings (SiFT)."""

import contextlib

import keras
import tensorflow as tf
from keras import ops

from tfnlp.functional.links import LINKS
from tfnlp.functional.weighted_losses import weighted_mean
from tfnlp.models import seed_variables, submodel
from tfnlp.training.step.strategy import replica_rows

# Added to variances, and to the largest entry of a gradient.
EPSILON = 1e-6
# Size to which an example's gradient is scaled before it enters the model, far from the limits of
# half precision, 6e-8 and 65504; and the smallest size assumed for a gradient.
PULL = 16.0
SMALLEST = 1e-30


class AdversarialRegularizer:
    """Divergence of a model's outputs under the worst small perturbation of its embeddings.

    He et al. 2020, 'DeBERTa', section 4 (scale-invariant fine-tuning), in the form of its code
    release; Jiang et al. 2020, 'SMART', eq. 1; Miyato et al. 2018 for the gradient step. Each
    token's embedding is normalised to mean 0 and variance 1, perturbed, and scaled back, so that a
    step means the same for every model. The perturbation is a random start, then one step along
    the gradient of the divergence. The loss is the symmetric divergence of the outputs.

    Unlike the release, all passes of a step share the dropout masks if `keep_draws` was called
    before the model. Two masks change an output more than the perturbation does.

    Args:
        model: from `tfnlp.models.build_model`.
        kind: the `tfnlp.tasks.kinds.Kind` of the model, whose outputs are compared by its link.
        weight: of the loss in a training.
        step_size: of the gradient step, in standard deviations of an embedding. The release's,
            the default, makes a loss of 0.00002 beside a cross-entropy of 0.29; 0.5 one to see.
        start: standard deviation of the random start, in the same unit; clipped at twice that.
        seed: of the random start.
    """

    def __init__(self, model, kind, weight, step_size=1e-4, start=1e-2, seed=0):
        # Transformer-XL's layer also returns its tables.
        x = keras.tree.flatten(model.get_layer("embeddings").output)[0]
        self.embed = keras.Model(model.input, x)
        self.rest = submodel([x, model.input], {key: model.output[key] for key in kind.reads})
        self.link = LINKS[kind.link]
        self.weight = weight
        self.step_size = step_size
        self.start = start
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.seeds = seed_variables(model)
        self.draws = []

    def keep_draws(self):
        """Store the dropout seeds that the next pass of the model uses."""
        self.draws = [(seed, seed.value * 1) for seed in self.seeds]

    def __call__(self, inputs, outputs, sample_weight=None):
        """Return the loss of a batch, without its weight.

        Args:
            inputs: of the model.
            outputs: the model's outputs for these inputs.
            sample_weight: (B,), of the examples; equal weights where None.
        """
        inputs = {key: ops.convert_to_tensor(value) for key, value in inputs.items()}
        x = ops.stop_gradient(self._again(self.embed, inputs))  # (B, L, D)
        x = ops.cast(x, "float32")
        scale = ops.sqrt(ops.var(x, axis=-1, keepdims=True) + EPSILON)  # (B, L, 1)
        move = self._start(ops.shape(x))
        gradient = self.gradient(
            inputs, outputs, x, scale=scale, move=move, sample_weight=sample_weight
        )
        largest = ops.max(ops.abs(gradient), axis=-1, keepdims=True)
        move = ops.stop_gradient(move + self.step_size * gradient / (largest + EPSILON))
        moved = self._again(self.rest, [x + scale * move, inputs])
        return self._divergence(moved, outputs, inputs, sample_weight)

    def gradient(self, inputs, outputs, x, scale, move, sample_weight=None):
        """Return the gradient of the divergence by the perturbation, (B, L, D) float32.

        Args:
            inputs, outputs, sample_weight: as in a call.
            x: the embeddings, (B, L, D) float32.
            scale: factor of the perturbation, (B, L, 1).
            move: the perturbation, (B, L, D) float32.
        """
        fixed = {key: ops.stop_gradient(value) for key, value in outputs.items()}
        with tf.GradientTape() as model_tape:
            model_tape.watch(move)
            moved = self._again(self.rest, [x + scale * move, inputs])
        with tf.GradientTape() as tape:
            tape.watch(moved)
            loss = self._divergence(moved, fixed, inputs, sample_weight)
        pulls = tape.gradient(loss, moved)
        # A small divergence has gradients that underflow in half precision on the way through
        # the model: each example's gradient is scaled to the size `PULL`.
        sizes = [ops.max(ops.abs(p), axis=list(range(1, len(p.shape)))) for p in pulls.values()]
        factor = PULL / ops.maximum(sum(sizes), SMALLEST)  # (B,)
        pulls = {key: _by_example(factor, pull) * pull for key, pull in pulls.items()}
        gradients = model_tape.gradient(moved, move, output_gradients=pulls)
        # Each text has the factor of its example, also with several choices per example. A
        # replica's share may be empty.
        texts = ops.shape(gradients)[0] // ops.maximum(ops.shape(factor)[0], 1)
        factor = ops.repeat(factor, texts)
        return gradients / _by_example(factor, gradients)

    def _again(self, part, inputs):
        """Run a part of the model in training mode with the stored dropout seeds."""
        with keras.StatelessScope(self.draws) if self.draws else contextlib.nullcontext():
            return part(inputs, training=True)

    def _start(self, shape):
        """Return a replica's rows of the random start, (B, L, D), drawn once for all replicas."""
        first, count = replica_rows(shape[0])
        move = keras.random.normal((count, *shape[1:]), seed=self.seed_generator)
        move = move[first : first + shape[0]]
        return ops.clip(self.start * move, -2 * self.start, 2 * self.start)

    def _divergence(self, a, b, inputs, sample_weight=None):
        losses = [self._one_divergence(a[key], b[key], inputs, sample_weight) for key in a]
        return sum(losses) / len(losses)

    def _one_divergence(self, a, b, inputs, sample_weight):
        mask = inputs.get("padding_mask")
        a, b = (self.link.without_padding(ops.cast(x, "float32"), mask) for x in (a, b))
        both = self.link.symmetric(a, b)  # (B,) or (B, L)
        by_token = len(both.shape) == 2
        return weighted_mean(both, mask if by_token else None, sample_weight)


def _by_example(factor, values):
    """Return `factor` (B,) reshaped to as many axes as `values` (B, ...)."""
    return ops.reshape(factor, (-1, *[1] * (len(values.shape) - 1)))
