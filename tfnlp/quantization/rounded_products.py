"""Products as 8-bit integers compute them: the one hook through which layers are rounded.

A layer computes its products by `product = layer.products(training)`, a function
`product(name, compute, **factors)`. In a float layer it is `plain_product`; in a fake-quantised
one a `RoundedProducts`, which rounds the factors and the result by the quantizers of their names.
"""

from keras import ops
from keras.src.backend import AutocastScope  # not public, and there is no other way

from tfnlp.functional.lookups import table_rows
from tfnlp.functional.products import times_transposed

# TFLite keeps smaller weights in float32.
SMALL = 1024


class RoundedProducts:
    """Products of one call of a fake-quantised layer, with rounded factors and results.

    At inference a matrix product is computed as a .tflite file does, in integers, where factors
    and result have quantizers. A tensor that is a factor of several products is rounded once.

    Args:
        layer: the `FakeQuantized` layer.
        training: whether the call is not inference.
    """

    def __init__(self, layer, training=None):
        self.layer = layer
        self.training = training
        # {(name, id): (tensor, rounded tensor)}; with the tensors, so that no id is used again.
        self.rounded = {}

    def __call__(self, name, compute=ops.matmul, **factors):
        """Return `compute` of the rounded factors, rounded itself as `name`.

        Anything but `ops.matmul` and `times_transposed` is computed in floats. Factors without a
        quantizer in the layer stay as they are.
        """
        quantizers = [self.layer.quantizer(factor) for factor in factors]
        result = self.layer.quantizer(name)
        a, *others = (self.round(factor, x) for factor, x in factors.items())
        if compute in (ops.matmul, times_transposed) and in_integers(
            self.layer, a, self.training, *quantizers, result
        ):
            twice = ops.not_equal(quantizers[1].zero_point, 0)
            steps = [quantizer.step for quantizer in quantizers]
            b = others[0] if compute is ops.matmul else ops.swapaxes(others[0], -1, -2)
            product = integer_product(a, b, steps, result.step, twice)
        else:
            product = compute(a, *others)
        return self.round(name, product)

    def round(self, name, x):
        """Round a tensor if the layer has a quantizer for it, and it was not rounded before."""
        quantizer = self.layer.fake_quantizers.get(name)
        if quantizer is None:
            return x
        if (name, id(x)) not in self.rounded:
            rounded = quantizer(x)
            self.rounded[name, id(x)] = x, rounded
            self.rounded[name, id(rounded)] = rounded, rounded
        return self.rounded[name, id(x)][1]


def rounded_dense(dense, x, training=None):
    """Compute `activation(x . kernel + bias)` for x (rows, D) as 8-bit integers do.

    Each unit's weights are rounded by themselves, and the bias as a file holds it: in steps of
    the input's times the unit's.

    Args:
        dense: a fake-quantised layer with quantizers for "inputs" and "outputs", and for
            "activations" if the activation is to be rounded.
        x: (rows, D).
        training: whether the call is not inference.
    """
    quantizers = dense.fake_quantizers
    x = quantizers["outputs"](_rounded_sums(dense, quantizers["inputs"](x), training))
    x = x if dense.activation is None else dense.activation(x)
    return quantizers["activations"](x) if "activations" in quantizers else x


def _rounded_sums(dense, x, training):
    """Compute `x . kernel + bias` for rounded x with rounded weights."""
    inputs, outputs = dense.fake_quantizers["inputs"], dense.fake_quantizers["outputs"]
    # In the variables' type: a cast to half precision before would change the steps.
    with AutocastScope(None):
        kernel = ops.convert_to_tensor(dense.kernel)
        bias = 0.0 if dense.bias is None else ops.convert_to_tensor(dense.bias)
        steps = weight_steps(kernel, 0)  # (1, units)
        sum_steps = inputs.step * steps[0]
        if in_integers(dense, x, training, inputs, outputs):
            sums = ops.matmul(count_steps(x, inputs.step), count_steps(kernel, steps))
            # As XNNPACK does, in this order.
            counts = (sums + count_steps(bias, sum_steps)) * (sum_steps / outputs.step)
            return count_steps(counts, 1.0) * outputs.step
        kernel, bias = round_to_steps(kernel, steps), round_to_steps(bias, sum_steps)
    kernel, bias = (ops.cast(w, dense.compute_dtype) for w in (kernel, bias))
    x = ops.matmul(x, kernel)
    return x if dense.bias is None else ops.add(x, bias)


def rounded_rows(table, ids, dtype):
    """Take rows of a table (R, D), each rounded by itself as in a .tflite file."""
    if table.shape[0] * table.shape[1] < SMALL:
        return table_rows(table, ids)
    with AutocastScope(None):
        rows = round_weights(table_rows(table, ids), -1)
    return ops.cast(rows, dtype)


def in_integers(layer, x, training, *quantizers):
    """Return whether to compute a product of `x` as a .tflite file does.

    True for float32 at inference, if every quantizer is there and none observes, unless the
    model is being converted.
    """
    floats = training or layer.is_converted or None in quantizers or x.dtype != "float32"
    return not floats and not any(quantizer.observes for quantizer in quantizers)


def round_weights(x, axis):
    """Round weights to 1/127ths of the largest along an axis; gradients pass unchanged."""
    return round_to_steps(x, weight_steps(x, axis))


def weight_steps(x, axis):
    """Return the step size of `round_weights` along an axis, without gradient."""
    steps = ops.maximum(ops.max(ops.abs(x), axis=axis, keepdims=True) / 127, 1e-12)
    return ops.stop_gradient(steps)


def round_to_steps(x, step):
    """Round to multiples of a step; gradients pass unchanged."""
    return count_steps(x, step) * step


def count_steps(x, step):
    """Return x / step, rounded; the gradient is that of the quotient."""
    count = x / step
    return count + ops.stop_gradient(ops.round(count) - count)


def integer_product(a, b, steps, step, twice):
    """Compute `a . b` as LiteRT's integer BATCH_MATMUL does, before rounding to whole steps.

    Where 0 of `b` is not the integer 0, LiteRT rounds twice: to a grid of 2^-n steps just wider
    than the product of those of `a` and `b`, then to whole steps, halves away from zero, which is
    `MultiplyByQuantizedMultiplier` of gemmlowp. Some 0.3 % of the results are one step off by
    it. XNNPACK, which runs dense layers, rounds once.

    Args:
        a: (..., T, H), multiples of a step.
        b: (..., H, S), likewise.
        steps: those of `a` and of `b`.
        step: of the result.
        twice: a boolean, whether LiteRT rounds twice.

    Returns:
        (..., T, S), to be rounded to multiples of `step`. The gradient is the product's.
    """
    # Sums of whole numbers are exact in float32, but not their multiples.
    sums = ops.matmul(count_steps(a, steps[0]), count_steps(b, steps[1]))
    *steps, step = (ops.cast(x, "float64") for x in (*steps, step))
    sum_step = steps[0] * steps[1]
    grid = step * ops.minimum(2.0 ** (ops.floor(ops.log2(sum_step / step)) + 1), 0.5)
    count = ops.round(ops.cast(sums, "float64") * (sum_step / grid))
    # Half of the grid more moves none but those that are halves of a step.
    rounded = ops.cast((count + ops.sign(count) / 2) * grid, "float32")
    product = sums * ops.cast(sum_step, "float32")
    return product + ops.stop_gradient(ops.where(twice, rounded, product) - product)
