"""AdamW, LAMB and Muon over all replicas, with layer-wise rates and averages of the weights."""

import contextlib
import re

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from keras.src.optimizers.base_optimizer import global_norm

from tfnlp.functional.recompute import recompute_blocks
from tfnlp.training.step import schedules
from tfnlp.training.step.frozen import freeze
from tfnlp.training.step.layer_wise_rates import layer_factors
from tfnlp.training.step.lora import add_lora

# Names of the variables of norms; Keras' `RMSNormalization` has `scale`.
NORM_VARIABLES = ("gamma", "beta", "scale")
# Paths of the kernels of blocks and of recurrent layers.
_BLOCK_KERNEL = re.compile(r"(encoder|decoder|forward|backward)[_/].*kernel$")


class SummedGradients:
    """Mixin for a `keras.optimizers.Optimizer` that clips gradients summed over all replicas.

    For the global norm, the gradients of a token that occurs several times are summed first, as in
    PyTorch. Under a strategy it is the norm of the gradients summed over the replicas, not of each
    replica's own. Variables may have a factor of the learning rate.

    Averages of the weights are Keras' (`use_ema`), but are never written into the model: see
    `averaged_weights`.

    Attributes:
        norm_metric: a `keras.metrics.Mean` of the global norm before clipping; None for none.
    """

    rate_factors = None
    norm_metric = None

    def apply(self, grads, trainable_variables=None):
        grads = summed_gradients(grads)
        if self.norm_metric is not None:
            self.norm_metric.update_state(global_norm(grads))
        super().apply(grads, trainable_variables)

    def _all_reduce_sum_gradients(self, grads_and_vars):
        # Keras would sum over the replicas here, after clipping: `apply` has already done it.
        return grads_and_vars

    def _apply_weight_decay(self, variables):
        # `update_step` applies it, with the variable's own rate.
        pass

    def finalize_variable_values(self, var_list):
        # Keras would load the averages after each `fit`, which would break resumed training.
        pass

    def scale_rates(self, variables, factors):
        """Set a factor of the learning rate, and so of the decay, for each variable."""
        keys = map(self._var_key, variables)
        self.rate_factors = dict(zip(keys, factors, strict=True))

    def _rate(self, variable, learning_rate):
        rate = tf.cast(learning_rate, variable.dtype)
        factors = self.rate_factors
        return rate if factors is None else rate * factors[self._var_key(variable)]


@keras.saving.register_keras_serializable("tfnlp")
class FusedAdamW(SummedGradients, keras.optimizers.AdamW):
    """`keras.optimizers.AdamW` in one fused TensorFlow kernel, with one pass over each variable.

    As in PyTorch, and not as in Keras, `epsilon` is added to the corrected root (Kingma & Ba
    2015, algorithm 1). The kernel has no `amsgrad`. See also `SummedGradients`.
    """

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        # Made once for all variables: a graph of them for each takes a second to trace.
        step = tf.cast(tf.convert_to_tensor(self.iterations) + 1, "float32")
        beta1, beta2 = tf.constant(self.beta_1), tf.constant(self.beta_2)
        numbers = {"lr": learning_rate, "beta1": beta1, "beta2": beta2}
        numbers |= {"beta1_power": beta1**step, "beta2_power": beta2**step}
        # The kernel adds epsilon to the root before the bias correction.
        numbers["epsilon"] = self.epsilon * tf.sqrt(1 - numbers["beta2_power"])
        super()._backend_update_step(grads, trainable_variables, numbers)

    def update_step(self, gradient, variable, numbers):
        numbers = {name: tf.cast(x, variable.dtype) for name, x in numbers.items()}
        numbers["lr"] = rate = self._rate(variable, numbers["lr"])
        if self.weight_decay is not None and self._use_weight_decay(variable):
            self.assign_sub(variable, variable * (rate * self.weight_decay))
        index = self._get_variable_index(variable)
        tf.raw_ops.ResourceApplyAdam(
            var=_handle(variable),
            m=_handle(self._momentums[index]),
            v=_handle(self._velocities[index]),
            grad=tf.cast(tf.convert_to_tensor(gradient), variable.dtype),
            **numbers,
        )


@keras.saving.register_keras_serializable("tfnlp")
class Lamb(SummedGradients, keras.optimizers.Lamb):
    """LAMB: Adam's update with decay, scaled to the size of each variable.

    You et al. 2020, algorithm 2, with the identity for phi. Keras' own version decays the weights
    outside the scaled update, and scales every variable. Here, as in the authors' code, variables
    that are excluded from the decay (biases, norms) get Adam's unscaled update. See
    `SummedGradients`.
    """

    def update_step(self, gradient, variable, learning_rate):
        rate = self._rate(variable, learning_rate)
        gradient = tf.cast(tf.convert_to_tensor(gradient), variable.dtype)
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        self.assign_add(m, (gradient - m) * (1 - self.beta_1))
        self.assign_add(v, (tf.square(gradient) - v) * (1 - self.beta_2))
        step = ops.cast(self.iterations + 1, variable.dtype)
        root = ops.sqrt(v / (1 - self.beta_2**step)) + self.epsilon
        update = m / (1 - self.beta_1**step) / root
        if self._use_weight_decay(variable):
            update = update + (self.weight_decay or 0.0) * variable
            sizes = tf.norm(tf.convert_to_tensor(variable)), tf.norm(update)
            scaled = tf.math.divide_no_nan(*sizes)
            rate = rate * tf.where((sizes[0] > 0) & (sizes[1] > 0), scaled, 1.0)
        self.assign_sub(variable, rate * update)


@keras.saving.register_keras_serializable("tfnlp")
class Muon(SummedGradients, keras.optimizers.Muon):
    """`keras.optimizers.Muon` for the kernels of blocks, and AdamW for every other variable.

    Its update of a matrix is the momentum made orthogonal by Newton-Schulz iterations (Jordan
    et al. 2024), of root mean square 0.2, as AdamW's is in a long pretraining (Liu et al. 2025,
    'Muon is Scalable for LLM Training', section 2.2). AdamW's begins at 1 and is 0.3 to 0.4 in
    the first 60 steps of fine-tuning MiniLM, so that a short training takes a higher rate with
    Muon. Embeddings, heads, norms and biases are AdamW's. See `SummedGradients`.
    """

    def _should_use_adamw(self, variable):
        return not is_block_kernel(variable)

    def update_step(self, gradient, variable, learning_rate):
        rate = self._rate(variable, learning_rate)
        if self.weight_decay is not None and self._use_weight_decay(variable):
            self.assign_sub(variable, variable * tf.cast(self.weight_decay, rate.dtype) * rate)
        gradient = tf.cast(tf.convert_to_tensor(gradient), variable.dtype)
        super().update_step(gradient, variable, rate)


@keras.saving.register_keras_serializable("tfnlp")
class ReplicaLossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """Keras' `LossScaleOptimizer` that skips a step if any replica's gradients overflow.

    Keras checks only the gradients of each replica, or of the first.
    """

    def check_finite(self, grads):
        finite = super().check_finite(grads)
        context = tf.distribute.get_replica_context()
        overflows = context.all_reduce(tf.distribute.ReduceOp.SUM, 1 - tf.cast(finite, "int32"))
        return overflows == 0


def summed_gradients(gradients):
    """Return gradients (or None) summed over all replicas and over a token's occurrences."""
    return [_summed_rows(g) for g in _sum_over_replicas(gradients)]


def _sum_over_replicas(gradients):
    """Return gradients (or None) summed over all replicas; unchanged for one replica."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return gradients
    present = [g for g in gradients if g is not None]
    summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, present))
    return [None if g is None else next(summed) for g in gradients]


def _summed_rows(gradient):
    """Return a gradient with the rows of repeated indices summed."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def _handle(variable):
    """Return the resource of a Keras or TensorFlow variable; the local one under a strategy."""
    return (variable.value if isinstance(variable, keras.Variable) else variable).handle


def is_decayed(variable):
    """Return whether weight decay applies to a variable: not to biases of any kind or norms.

    This is the rule of `transformers`' Trainer (`get_decay_parameter_names`): every variable named
    a bias is excluded, whether it is added to keys, queries, scores or clusters.
    """
    return "bias" not in variable.name and variable.name not in NORM_VARIABLES


def is_block_kernel(variable):
    """Return whether a variable is a matrix of a block, of attention, feed-forward or a cell."""
    return len(variable.shape) == 2 and bool(_BLOCK_KERNEL.match(variable.path))


# The class, its epsilon, and the beginning of its names of the two betas.
OPTIMIZERS = {
    "adamw": (FusedAdamW, 1e-8, ""),
    "lamb": (Lamb, 1e-6, ""),
    "muon": (Muon, 1e-8, "adam_"),
}


def make_optimizer(
    model,
    schedule,
    weight_decay=0.01,
    clip_norm=1.0,
    name="adamw",
    ema_decay=0.0,
    layer_decay=1.0,
    **means,
):
    """Return an optimizer without weight decay for biases and norms.

    It is wrapped in a loss scale optimizer if the global policy is "mixed_float16".

    Args:
        model: the model whose variables are trained.
        schedule: a rate or a `LearningRateSchedule`.
        weight_decay: lambda; multiplied with the rate.
        clip_norm: the largest global gradient norm; None for no clipping.
        name: "adamw" (Loshchilov & Hutter 2019), "lamb" for large batches (You et al. 2020), or
            "muon" (Jordan et al. 2024).
        ema_decay: decay of the moving average of the weights, for `averaged_weights`; 0 for none.
        layer_decay: factor of the rate of each block relative to the block above it
            (`layer_factors`).
        means: `beta_1` and `beta_2`, decays of the means of gradients and of squared gradients,
            0.9 and 0.999 by default; `epsilon`, added to the root of the latter, the optimizer's
            own by default.
    """
    kind, epsilon, prefix = OPTIMIZERS[name]
    betas = {f"{prefix}{key}": value for key, value in means.items() if key != "epsilon"}
    optimizer = kind(
        schedule,
        weight_decay=weight_decay,
        epsilon=means.get("epsilon", epsilon),
        **betas,
        global_clipnorm=clip_norm,
        use_ema=bool(ema_decay),
        ema_momentum=ema_decay,
    )
    variables = model.trainable_variables
    optimizer.exclude_from_weight_decay(var_list=[v for v in variables if not is_decayed(v)])
    if layer_decay != 1:
        optimizer.scale_rates(variables, layer_factors(variables, layer_decay))
    if keras.config.dtype_policy().name == "mixed_float16":
        return ReplicaLossScaleOptimizer(optimizer)
    return optimizer


def compile_model(config, trainer, steps_per_epoch):
    """Compile a `Trainer` for epochs of so many steps, as a `TrainingConfig` says."""
    freeze(trainer, config.freeze_layers, config.freeze_embeddings)
    if config.lora_rank:
        add_lora(trainer, config.lora_rank, config.lora_layers)
    trainer.accumulation_steps = config.accumulation_steps
    if config.gradient_checkpointing:
        recompute_blocks(trainer)
    trainer.compile(optimizer_of(config, trainer, steps_per_epoch), jit_compile=config.xla)


def optimizer_of(config, model, steps_per_epoch):
    """Return the optimizer of a model, with a schedule over the steps of the whole training.

    Args:
        config: a `TrainingConfig`.
        model: the model whose variables are trained.
        steps_per_epoch: batches in an epoch.

    Raises:
        InputError: if there are more warm-up steps than training steps.
    """
    total, warmup = config.total_steps(steps_per_epoch), config.warmup_steps
    if warmup is None:
        warmup = round(config.warmup_share * total)
    means = {name: vars(config)[name] for name in ("beta_1", "beta_2", "epsilon")}
    means = {name: value for name, value in means.items() if value is not None}
    options = {
        "polynomial": {"power": config.decay_power},
        "wsd": {"decay_steps": round(config.decay_share * total)},
    }
    schedule = schedules.SCHEDULES[config.schedule](
        config.learning_rate,
        total,
        warmup_steps=warmup,
        end_share=config.end_rate_share,
        **options.get(config.schedule, {}),
    )
    return make_optimizer(
        model,
        schedule,
        config.weight_decay,
        config.clip_norm or None,
        name=config.optimizer,
        ema_decay=config.ema_decay,
        layer_decay=config.layer_decay,
        **means,
    )


@contextlib.contextmanager
def averaged_weights(model):
    """Temporarily set a compiled model's weights to their moving averages, if there are any.

    The average of the first step is that step's weights; then
    average = decay * average + (1 - decay) * weights (Polyak & Juditsky 1992, with forgetting).
    """
    optimizer = model.optimizer
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if not optimizer.use_ema or not np.asarray(optimizer.iterations):
        yield
        return
    variables = optimizer._trainable_variables
    weights = [tf.identity(v.value) for v in variables]
    for variable, average in zip(
        variables, optimizer._model_variables_moving_average, strict=True
    ):
        variable.assign(average.value)
    try:
        yield
    finally:
        for variable, value in zip(variables, weights, strict=True):
            variable.assign(value)
