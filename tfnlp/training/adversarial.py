"""Virtual adversarial fine-tuning: the same answer for slightly moved embeddings (SiFT)."""

import contextlib

import keras
import tensorflow as tf
from keras import ops

from tfnlp.losses import weighted_mean
from tfnlp.models import submodel
from tfnlp.training.strategy import replica_rows

# Added to variances, and to the largest entry of a gradient.
EPSILON = 1e-6
# How large an example's gradient is where it goes into the model, far from what half precision
# cannot hold, 6e-8 and 65504; and the least that it is taken for.
PULL = 16.0
SMALLEST = 1e-30


class AdversarialRegularizer:
    """How much a model's outputs change when its embeddings move the worst way.

    He et al. 2020, 'DeBERTa', section 4 (scale-invariant fine-tuning), in the form of its code
    release; Jiang et al. 2020, 'SMART', eq. 1; Miyato et al. 2018 for the gradient step. Each
    token's embedding is normalised to mean 0 and variance 1, moved there, and scaled back, so
    that a step means the same for every model: a random start, then one step along the
    gradient of the divergence. The loss is the symmetric divergence of the outputs.

    Unlike the release, all passes of a step share what dropout draws, where `keep_draws` was
    called before the model: two draws differ by more than the move makes of an answer.

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
        self.rest = submodel([x, model.input], {key: model.output[key] for key in outputs})
        self.regression = model.output[outputs[0]].shape[-1] == 1
        self.weight = weight
        self.step_size = step_size
        self.start = start
        self.seed_generator = keras.random.SeedGenerator(seed)
        weights = {id(weight) for weight in model.weights}
        self.seeds = [v for v in model.variables if id(v) not in weights]
        self.draws = []

    def keep_draws(self):
        """Remembers the seeds of the dropout that a pass of the model is about to draw."""
        self.draws = [(seed, seed.value * 1) for seed in self.seeds]

    def __call__(self, inputs, outputs, sample_weight=None):
        """The loss of a batch.

        Args:
            inputs: of the model.
            outputs: what the model gave for them.
            sample_weight: (B,), of the examples; all count the same where None.
        """
        inputs = {key: ops.convert_to_tensor(value) for key, value in inputs.items()}
        x = ops.stop_gradient(self._again(self.embed, inputs))  # (B, L, D)
        x = ops.cast(x, "float32")
        scale = ops.sqrt(ops.var(x, axis=-1, keepdims=True) + EPSILON)  # (B, L, 1)
        move = self._start(ops.shape(x))
        gradient = self.gradient(inputs, outputs, x, scale, move, sample_weight)
        largest = ops.max(ops.abs(gradient), axis=-1, keepdims=True)
        move = ops.stop_gradient(move + self.step_size * gradient / (largest + EPSILON))
        moved = self._again(self.rest, [x + scale * move, inputs])
        return self.weight * self._divergence(moved, outputs, inputs, sample_weight)

    def gradient(self, inputs, outputs, x, scale, move, sample_weight=None):
        """How the divergence grows with a move of the embeddings, (B, L, D) float32.

        Args:
            inputs, outputs, sample_weight: as for a call.
            x: the embeddings, (B, L, D) float32.
            scale: what a move is multiplied by, (B, L, 1).
            move: (B, L, D) float32.
        """
        fixed = {key: ops.stop_gradient(value) for key, value in outputs.items()}
        with tf.GradientTape() as model_tape:
            model_tape.watch(move)
            moved = self._again(self.rest, [x + scale * move, inputs])
        with tf.GradientTape() as tape:
            tape.watch(moved)
            loss = self._divergence(moved, fixed, inputs, sample_weight)
        pulls = tape.gradient(loss, moved)
        # A small divergence pulls too little for half precision, which would make zeros of it on
        # the way through the model: it goes through at the size of `PULL`, for each example.
        sizes = [ops.max(ops.abs(p), axis=list(range(1, len(p.shape)))) for p in pulls.values()]
        factor = PULL / ops.maximum(sum(sizes), SMALLEST)  # (B,)
        pulls = {key: _by_example(factor, pull) * pull for key, pull in pulls.items()}
        found = model_tape.gradient(moved, move, output_gradients=pulls)
        # A text has the factor of its example, one of several to choose from too.
        texts = ops.shape(found)[0] // ops.maximum(ops.shape(factor)[0], 1)  # a share may be empty
        factor = ops.repeat(factor, texts)
        return found / _by_example(factor, found)

    def _again(self, part, inputs):
        """A part of the model in training, with the draws that were kept."""
        with keras.StatelessScope(self.draws) if self.draws else contextlib.nullcontext():
            return part(inputs, training=True)

    def _start(self, shape):
        """The random start of a batch, (B, L, D): the rows of a replica from one draw for all."""
        first, count = replica_rows(shape[0])
        move = keras.random.normal((count, *shape[1:]), seed=self.seed_generator)
        move = move[first : first + shape[0]]
        return ops.clip(self.start * move, -2 * self.start, 2 * self.start)

    def _divergence(self, a, b, inputs, sample_weight=None):
        losses = [self._one_divergence(a[key], b[key], inputs, sample_weight) for key in a]
        return sum(losses) / len(losses)

    def _one_divergence(self, a, b, inputs, sample_weight):
        a, b = ops.cast(a, "float32"), ops.cast(b, "float32")
        if self.regression:
            return weighted_mean(ops.square(a - b)[:, 0], sample_weight)
        log_a, log_b = ops.log_softmax(a), ops.log_softmax(b)
        # KL(b, a) + KL(a, b). Each pulls on the answer that it is measured on, towards the other
        # as it is: the gradient of the release's two cross-entropies, which are not 0 where
        # both agree.
        distance = ops.stop_gradient(ops.exp(log_b) - ops.exp(log_a))
        both = ops.sum(distance * (log_b - log_a), axis=-1)  # (B,) or (B, L)
        by_token = len(both.shape) == 2
        return weighted_mean(both, inputs["padding_mask"] if by_token else None, sample_weight)


def _by_example(factor, values):
    """`factor` (B,) with as many axes as `values` (B, ...)."""
    return ops.reshape(factor, (-1, *[1] * (len(values.shape) - 1)))
