"""Figures of a training's steps: losses, norm of the gradients, speed and memory."""

import resource
import sys
import time

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.layers import SharedEncoder
from tfnlp.layers.attention.base_attention import BaseAttention
from tfnlp.training.step.non_finite_steps import FiniteMean
from tfnlp.training.step.optimizer import is_block_kernel
from tfnlp.training.step.trainer import weighted_sum

# A weight's product costs 2 FLOPs an entry, and twice as many in the backward pass.
FLOPS = 6
# Figures of a step that differ between two runs of one command.
SPEED = ("tokens_per_second", "matrix_product_share", "peak_memory_mb")


class StepLog:
    """Means and sums over the steps since the last line of a log.

    They are Keras metrics, which stay on the device until `line` reads them.

    Args:
        trainer: a compiled `Trainer`; make it in the scope of the strategy.
    """

    def __init__(self, trainer):
        optimizer = getattr(trainer.optimizer, "inner_optimizer", trainer.optimizer)
        self._trainer, self._optimizer = trainer, optimizer
        self.means = {m.name: FiniteMean(name=f"step_{m.name}") for m in trainer.metrics}
        self.norm = optimizer.norm_metric = FiniteMean(name="step_gradient_norm")
        self.tokens = keras.metrics.Sum(name="step_tokens")
        self.flops = keras.metrics.Sum(name="step_flops")
        self._metrics = [*self.means.values(), self.norm, self.tokens, self.flops]
        self._products = MatrixProducts(trainer)
        self._rate = product_rate() * trainer.distribute_strategy.num_replicas_in_sync
        self._earlier = {}  # sums of a killed process since its last line
        self._seconds, self._since = 0.0, None

    @property
    def variables(self):
        return [variable for metric in self._metrics for variable in metric.variables]

    def count(self, inputs, outputs):
        """Add the tokens and the products of a batch, or of a part of it."""
        self.tokens.update_state(token_count(inputs))
        self.flops.update_state(self._products(inputs, outputs))

    def restored(self):
        """Leave sums that a killed process counted out of this one's speed."""
        self._earlier = {m.name: float(m.result()) for m in (self.tokens, self.flops)}

    def run_clock(self, running):
        """Start or stop the time that counts for the speed."""
        now = time.perf_counter()
        if self._since is not None:
            self._seconds += now - self._since
        self._since = now if running else None

    def line(self):
        """Return the figures since the last line, and begin anew."""
        self.run_clock(True)
        figures = {name: float(m.result()) for name, m in self.means.items() if _counts(m)}
        parts = self._trainer.part_weights or {}
        # A part has no mean where the steps have no entry of it, such as no entity.
        if counted := {name: weight for name, weight in parts.items() if name in figures}:
            figures["loss"] = weighted_sum(figures, counted)
        figures["learning_rate"] = float(self._optimizer.learning_rate)
        if _counts(self.norm):
            figures["gradient_norm"] = float(self.norm.result())
        tokens, flops = (
            float(m.result()) - self._earlier.get(m.name, 0) for m in (self.tokens, self.flops)
        )
        figures["tokens_per_second"] = tokens / self._seconds
        if flops:
            figures["matrix_product_share"] = flops / self._seconds / self._rate
        figures["peak_memory_mb"] = peak_memory()
        for metric in self._metrics:
            metric.reset_state()
        self._seconds, self._earlier = 0.0, {}
        return figures


class MatrixProducts:
    """FLOPs of a training step's matrix products, forward and backward.

    Counted are the kernels of all blocks and cells, the two products of each attention, and that
    with a table of tokens whose logits are an output. Left out are relative terms, the kernels of
    heads, a live teacher and second passes (`gradient_checkpointing`, adversarial).

    Args:
        model: a `Trainer`.

    Call arguments:
        inputs, outputs: of a batch.
    """

    def __init__(self, model):
        layers = list(model._flatten_layers())
        uses = {
            x.path: x.num_layers / len(x.blocks) for x in layers if isinstance(x, SharedEncoder)
        }
        self.kernels, self.widths = ({"encoder": 0.0, "decoder": 0.0} for _ in range(2))
        for variable in model.trainable_weights:
            if is_block_kernel(variable):
                count = _uses(uses, variable.path) * variable.shape[0] * variable.shape[1]
                self.kernels[_side(variable.path)] += count
        for layer in layers:
            if isinstance(layer, BaseAttention):
                width = layer.num_heads * (layer.key_dim + layer.value_dim)
                self.widths[_side(layer.path)] += _uses(uses, layer.path) * width
        tables = [v for v in model.weights if v.name == "token_table"]
        self.tables = {v.shape[0]: v.shape[1] for v in tables}

    def __call__(self, inputs, outputs):
        total, lengths = 0.0, []
        for name, ids in _leaves(inputs):
            if name.endswith("token_ids"):
                lengths.append(ops.cast(ops.shape(ids)[-1], "float32"))
                # A decoder attends to its own positions and to those of the encoder.
                pairs = self.widths[_side(name)] * sum(lengths) / len(lengths)
                total += ops.cast(ops.size(ids), "float32") * (self.kernels[_side(name)] + pairs)
        for _, logits in _leaves(outputs):
            if width := self.tables.get(logits.shape[-1] if logits.shape else None):
                total += ops.cast(ops.size(logits), "float32") * width
        return FLOPS * total


def token_count(inputs):
    """Return the number of tokens of a batch: without padding where the inputs have a mask."""
    leaves = _leaves(inputs)
    masks = {n.removesuffix("padding_mask"): x for n, x in leaves if n.endswith("padding_mask")}
    total = sum(ops.sum(ops.cast(mask, "float32")) for mask in masks.values())
    for name, ids in leaves:
        if name.endswith("token_ids") and name.removesuffix("token_ids") not in masks:
            total += ops.cast(ops.size(ids), "float32")
    return total


def product_rate(size=None, repeats=20):
    """Return the FLOPs of a second of this device's product of two square matrices.

    They have the dtype that the global policy computes in; the best of the repeats counts, as
    other processes may share the machine.
    """
    size = size or (4096 if tf.config.list_logical_devices("GPU") else 1024)
    matrix = tf.fill((size, size), tf.cast(1 / size, keras.config.dtype_policy().compute_dtype))
    seconds = []
    for _ in range(repeats + 1):  # the first prepares the kernel
        start = time.perf_counter()
        float(tf.matmul(matrix, matrix)[0, 0])  # waits for the device
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds[1:])


def peak_memory():
    """Return the greatest resident memory of this process so far, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _counts(mean):
    """Return whether a mean has a value; over all replicas."""
    return bool(np.asarray(mean.count))


def _leaves(tree):
    """Return the last name and the tensor of each leaf."""
    return [(str(path[-1]) if path else "", x) for path, x in keras.tree.flatten_with_path(tree)]


def _side(name):
    return "decoder" if name.startswith("decoder") else "encoder"


def _uses(uses, path):
    """Return how often a step uses what lies at a path, by {path of a shared encoder: uses}."""
    return uses.get(path.partition("/")[0], 1)
