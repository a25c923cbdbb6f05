"""AdamW with warm-up and linear decay, as BERT is trained."""

import keras
import tensorflow as tf
from keras import ops

# Names of the variables of norms; `scale` is that of Keras' `RMSNormalization`.
NORM_VARIABLES = ("gamma", "beta", "scale")


@keras.saving.register_keras_serializable("tfnlp")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A rate that rises linearly from 0 to its peak, then falls linearly to 0.

    Devlin et al. 2019, appendix A.2. As in `transformers`, the first step's rate is 0.

    Args:
        peak: the highest rate.
        total_steps: the steps until the rate is 0 again.
        warmup_steps: the steps until the peak.
    """

    def __init__(self, peak, total_steps, warmup_steps=0):
        if not 0 <= warmup_steps <= total_steps:
            raise ValueError(
                f"warmup_steps={warmup_steps} must lie between 0 and total_steps={total_steps}."
            )
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rise = step / max(self.warmup_steps, 1)
        fall = (self.total_steps - step) / max(self.total_steps - self.warmup_steps, 1)
        return self.peak * ops.maximum(0.0, ops.minimum(rise, fall) if self.warmup_steps else fall)

    def get_config(self):
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
        }


@keras.saving.register_keras_serializable("tfnlp")
class FusedAdamW(keras.optimizers.AdamW):
    """`keras.optimizers.AdamW` in one TensorFlow kernel, each variable passed over once.

    Three things are as in PyTorch and not as in Keras: `epsilon` is added to the corrected root
    (Kingma & Ba 2015, algorithm 1); the norm of all gradients, for clipping, counts a token
    that occurs several times by the sum of its gradients; and under a strategy it is the norm
    of the gradients that are summed over the replicas, not of each replica's own.

    Raises:
        ValueError: for `amsgrad`, which the kernel has not.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.amsgrad:
            raise ValueError(
                "amsgrad=True is not supported by FusedAdamW; use keras.optimizers.AdamW for it."
            )

    def apply(self, grads, trainable_variables=None):
        grads = [_summed_rows(g) for g in _sum_over_replicas(grads)]
        super().apply(grads, trainable_variables)

    def _all_reduce_sum_gradients(self, grads_and_vars):
        # Keras sums over the replicas here, after it has clipped: `apply` has done it before.
        return grads_and_vars

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        step = ops.cast(self.iterations + 1, variable.dtype)
        beta2_power = self.beta_2**step
        tf.raw_ops.ResourceApplyAdam(
            var=_handle(variable),
            m=_handle(self._momentums[index]),
            v=_handle(self._velocities[index]),
            beta1_power=self.beta_1**step,
            beta2_power=beta2_power,
            lr=tf.cast(learning_rate, variable.dtype),
            beta1=self.beta_1,
            beta2=self.beta_2,
            # The kernel adds it to the root before its correction.
            epsilon=self.epsilon * ops.sqrt(1 - beta2_power),
            grad=tf.cast(tf.convert_to_tensor(gradient), variable.dtype),
        )


@keras.saving.register_keras_serializable("tfnlp")
class ReplicaLossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """Keras' `LossScaleOptimizer`, but a step is left out if any replica's gradients overflow.

    Keras asks each replica, or the first one, about its own gradients alone.
    """

    def check_finite(self, grads):
        finite = super().check_finite(grads)
        context = tf.distribute.get_replica_context()
        overflows = context.all_reduce(tf.distribute.ReduceOp.SUM, 1 - tf.cast(finite, "int32"))
        return overflows == 0


def _sum_over_replicas(gradients):
    """Gradients (or None) summed over all replicas; as they are where there is one."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return gradients
    found = [g for g in gradients if g is not None]
    summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, found))
    return [None if g is None else next(summed) for g in gradients]


def _summed_rows(gradient):
    """A gradient in which no row of a table occurs twice."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def _handle(variable):
    """The resource of a Keras or TensorFlow variable; the local one under a strategy."""
    return (variable.value if isinstance(variable, keras.Variable) else variable).handle


def is_decayed(variable):
    """Whether weight decay is for a variable: not for biases of any kind, and not for norms.

    The rule of `transformers`' Trainer (`get_decay_parameter_names`): what is called a bias is
    one, be it added to keys, queries, scores or clusters.
    """
    return "bias" not in variable.name and variable.name not in NORM_VARIABLES


def adamw(model, schedule, weight_decay=0.01, clip_norm=1.0):
    """AdamW (Loshchilov & Hutter 2019) that leaves biases and norms undecayed.

    Args:
        model: whose variables it will train.
        schedule: a rate or a `LearningRateSchedule`.
        weight_decay: lambda; multiplied with the rate.
        clip_norm: the largest norm of all gradients together; None for no clipping.

    Returns:
        A `FusedAdamW`; in a loss scale optimizer where the global policy is "mixed_float16".
    """
    optimizer = FusedAdamW(
        schedule, weight_decay=weight_decay, epsilon=1e-8, global_clipnorm=clip_norm
    )
    optimizer.exclude_from_weight_decay(
        var_list=[v for v in model.trainable_variables if not is_decayed(v)]
    )
    if keras.config.dtype_policy().name == "mixed_float16":
        return ReplicaLossScaleOptimizer(optimizer)
    return optimizer
