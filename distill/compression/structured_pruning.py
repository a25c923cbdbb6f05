"""Structured pruning of the least important attention heads and feed-forward units."""

import dataclasses
import functools
import itertools
import re

import keras
import numpy as np
import tensorflow as tf

from distill.compression.rebuild import rebuild
from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.models import config_of
from tfnlp.training.experiments.finetuning import encode_batches
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar

# Kernels that read the heads and units; each head or unit is one or more of their rows.
GATED = {"heads": "attention/output/kernel", "units": "feed_forward/output/kernel"}


def measure_importance(model, task, tokenizer, examples, max_length, limit=1000, seed=0):
    """Measure how much the loss depends on each attention head and each feed-forward unit.

    Michel et al. 2019, 'Are Sixteen Heads Really Better than One?', eq. 2: the mean over examples
    of |dL / dg| for a gate g on a head, which equals A_h(x) * dL / dA_h(x). Units have a gate in
    the same way. The gate scales the rows of the kernel that reads the head, so its gradient is
    the sum over these rows of kernel * gradient. Without labels, as of vectors, L is each vector's
    product with random signs: its gradient grows with how much the vector depends on the gate.

    Args:
        model: fine-tuned for the task.
        task: see `tfnlp.tasks`.
        tokenizer: the model's.
        examples: of the task.
        max_length: the longest input in tokens.
        limit: the number of inputs to use, drawn from all of any length.
        seed: of the draw, and of the signs.

    Returns:
        {block: {"heads": (N,), "units": (F,)}} by the path of each block, such as "encoder_0" (a
        block that layers share has one path), float64; no "heads" in families whose heads cannot
        be pruned.

    Raises:
        InputError: if the model has no attention heads and feed-forward units.
    """
    config = config_of(model)
    _check_has_blocks(model, config)
    gated = _gated_kernels(model, config)  # {(block, kind): kernel}
    kernels = [kernel.value for kernel in gated.values()]
    weights = merged_weights(model)
    values = [tf.convert_to_tensor(weights[kernel.path]) for kernel in gated.values()]

    draws = keras.random.SeedGenerator(seed)

    @tf.function(reduce_retracing=True)
    def gate_gradients(inputs, *labels):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(kernels)
            outputs = model(inputs, training=False)
            outputs = {key: outputs[key] for key in task.kind.reads}
            loss = task.loss(*labels, outputs) if labels else _randomly_signed(outputs, draws)
        gradients, by_kernel = [], tape.gradient(loss, kernels)
        for (_, kind), value, gradient in zip(gated, values, by_kernel, strict=True):
            rows = tf.reduce_sum(value * gradient, axis=1)
            if kind == "heads":  # several rows each
                rows = tf.reduce_sum(tf.reshape(rows, (config.num_heads, -1)), 1)
            gradients.append(tf.abs(rows))
        return gradients

    # Batches of one, since the absolute value is of each example's gradient. Shuffled, since
    # otherwise the shortest would come first.
    options = {"batch_size": 1, "shuffle": True, "seed": seed}
    batches = encode_batches(task, tokenizer, examples, max_length, **options)
    count = min(limit, len(batches))
    sums = [0.0] * len(gated)
    with progress_bar(total=count, desc="importance", unit="text") as bar:
        for batch in itertools.islice(batches.dataset(), count):
            for i, gradient in enumerate(gate_gradients(*batch)):
                sums[i] = sums[i] + np.asarray(gradient, "float64")
            bar.update()
    importance = {}
    for (block, kind), total in zip(gated, sums, strict=True):
        importance.setdefault(block, {})[kind] = total / count
    return importance


def _randomly_signed(outputs, draws):
    """Return the sum of outputs, each number by a random sign of a `SeedGenerator`."""
    signs = {
        x: keras.random.randint(v.shape, 0, 2, seed=draws) * 2 - 1 for x, v in outputs.items()
    }
    return sum(tf.reduce_sum(v * tf.cast(signs[x], v.dtype)) for x, v in outputs.items())


def _gated_kernels(model, config):
    """Return {(path of a block, "heads" or "units"): the kernel that reads them}."""
    kinds = GATED if config.any_head_dim else {"units": GATED["units"]}
    return {
        (match[1].rstrip("/"), kind): weight
        for weight in model.weights
        for kind, ending in kinds.items()
        if (match := re.fullmatch(rf"(.*/|){ending}", weight.path))
    }


def prune_structure(model, importance, num_heads=None, intermediate_dim=None):
    """Build a model of fewer heads and narrower feed-forward networks.

    The most important of each layer stay, the same number in every layer. A model with fewer heads
    has a `head_dim` in its config. Its folder loads in tfnlp alone: `transformers` derives the
    size of a head from the width.

    Args:
        model: from `tfnlp.models.build_model`.
        importance: from `measure_importance`.
        num_heads: the number of heads to keep; all where None.
        intermediate_dim: the number of feed-forward units to keep; all where None.

    Returns:
        A `TextModel`, whose outputs are those of `model` with the pruned parts multiplied by 0.

    Raises:
        InputError: if the model has fewer, the family needs all its heads, or the model has no
            heads and units.
    """
    config = config_of(model)
    _check_has_blocks(model, config)
    num_heads = config.num_heads if num_heads is None else num_heads
    num_units = config.intermediate_dim if intermediate_dim is None else intermediate_dim
    sizes = {"num_heads": num_heads, "intermediate_dim": num_units}
    for name, size in sizes.items():
        limit = getattr(config, name)
        if not 1 <= size <= limit:
            raise InputError(f"{name}={size} must lie between 1 and the model's {limit}.")
    if num_heads < config.num_heads and not config.any_head_dim:
        raise InputError(
            f"num_heads={num_heads}: heads of a {model.name} cannot be pruned, since its "
            "attention has more weights by head than BERT's; keep all heads, or give a model like "
            "BERT."
        )
    fields = {"intermediate_dim": num_units}
    if num_heads < config.num_heads:
        fields |= {"num_heads": num_heads, "head_dim": config.key_dim}
    counts = {"heads": num_heads, "units": num_units}
    rows = {
        block: {kind: _best(x, counts[kind]) for kind, x in scores.items()}
        for block, scores in importance.items()
    }
    return _with_parts(model, dataclasses.replace(config, **fields), rows)


def order_structure(model, importance):
    """Order the heads and units of each layer, the most important first.

    Args:
        model: from `tfnlp.models.build_model`.
        importance: from `measure_importance`.

    Returns:
        A `TextModel` that computes the same.
    """
    order = {
        block: {kind: np.argsort(-x, kind="stable") for kind, x in scores.items()}
        for block, scores in importance.items()
    }
    return _with_parts(model, config_of(model), order)


def _with_parts(model, config, parts):
    """Return a model of some of another's heads and units, in an order.

    Args:
        model: to take them from.
        config: of the new model.
        parts: {block: {kind: numbers}} of the heads and units.
    """
    source = config_of(model)
    kept = {}  # {block: {kind: rows}}, with the number of all units
    for block, numbers in parts.items():
        kept[block] = {"units": numbers["units"], "count": source.intermediate_dim}
        if "heads" in numbers:
            rows = numbers["heads"][:, None] * source.key_dim + np.arange(source.key_dim)
            kept[block]["heads"] = rows.ravel()
    return rebuild(model, config, functools.partial(_cut, kept))


def _cut(kept, weight, value):
    """Return the rows or columns of a weight that belong to the kept heads and units."""
    for block, rows in kept.items():
        part = weight.path.removeprefix(f"{block}/")
        if part == weight.path:
            continue
        if part == GATED["units"]:
            return value[rows["units"]]
        if part.startswith("feed_forward/intermediate/"):
            halves = value.reshape(*value.shape[:-1], -1, rows["count"])  # one, or two with a gate
            return halves[..., rows["units"]].reshape(*value.shape[:-1], -1)
        if "heads" in rows and part == GATED["heads"]:
            return value[rows["heads"]]
        if "heads" in rows and re.match(r"attention/(query|key|value)/", part):
            return value[..., rows["heads"]]
    return value


def _check_has_blocks(model, config):
    """Raise an InputError if a model has no Transformer blocks, such as a recurrent one."""
    if not hasattr(config, "intermediate_dim"):
        raise InputError(
            f"The model is a {model.name}, which has no attention heads or feed-forward units to "
            "prune; give an encoder such as BERT."
        )


def _best(scores, count):
    """Return the indices of the highest scores, ascending; of equal ones the first."""
    return np.sort(np.argsort(-np.asarray(scores), kind="stable")[:count])
