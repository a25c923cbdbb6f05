"""Products as 8-bit integers give them, for training to get used to.

Jacob et al. 2018, 'Quantization and training of neural networks for efficient integer-arithmetic-
only inference'. A layer that is fake-quantised rounds what goes into its products, its weights
and what comes out, each to 256 steps; all else stays in float.
"""

import contextlib
import math

import keras
from keras import ops
from keras.src.backend import AutocastScope  # not public, and there is no other way

# TFLite keeps smaller weights in float32.
SMALL = 1024
# An attention weight of exactly 1 has no step, so that 0 has one and all are 1 / 256 apart.
WEIGHT_RANGE = (0.0, 255 / 256)


class FakeQuantizer(keras.layers.Layer):
    """Rounds a tensor to 256 steps of a range, which follows what it sees in training.

    The range holds zero. It widens at once to what a batch has, and narrows slowly, as layers that
    are called at several places see several ranges. Gradients pass within it as if nothing were
    rounded.

    Args:
        limits: the range, (low, high), where it does not follow anything.
        momentum: the share of a range that stays at each step where the batch's is narrower.

    Call arguments:
        inputs: of any shape, a float type.
        training: whether to follow `inputs`.

    Returns:
        As `inputs`.
    """

    def __init__(self, limits=None, momentum=0.99, **kwargs):
        super().__init__(dtype="float32", autocast=False, **kwargs)
        self.limits = limits
        self.momentum = momentum
        self.observes = False  # whether to follow inputs, and leave them as they are

    def build(self, input_shape):
        if self.limits is None:
            options = {"shape": (), "trainable": False, "aggregation": "mean"}
            self.low = self.add_weight(name="low", initializer="zeros", **options)
            # Not zero, of which no steps can be made.
            high = keras.initializers.Constant(1e-6)
            self.high = self.add_weight(name="high", initializer=high, **options)

    def call(self, inputs, training=None):
        if self.limits is None and (training or self.observes):
            x = ops.stop_gradient(ops.cast(inputs, "float32"))
            self.low.assign(-self._widened(-self.low, ops.max(-x)))
            self.high.assign(self._widened(self.high, ops.max(x)))
        if self.observes:
            return inputs
        low, high = self.limits or (self.low, self.high)
        return keras.quantizers.fake_quant_with_min_max_vars(inputs, low, high)

    def _widened(self, bound, found):
        """A bound of the range after a batch whose own is `found`; at least zero."""
        narrowed = self.momentum * bound + (1 - self.momentum) * ops.maximum(found, 0.0)
        return ops.maximum(found, narrowed)


class FakeQuantized:
    """A mixin of layers that can be fake-quantised, by `fake_quantize`."""

    # What rounds each tensor, by its name; empty until `fake_quantize`.
    fake_quantizers = {}  # noqa: RUF012
    is_fake_quantized = False

    def rounded_tensors(self):
        """The names of the tensors to round; for each the limits of its range, or None."""
        return {}

    def _quantizer(self, name):
        """The `FakeQuantizer` of a tensor; None where it is not rounded."""
        return self.fake_quantizers.get(name) if self.is_fake_quantized else None

    def _rounded(self, name, x):
        """A tensor, rounded where the layer is fake-quantised and has a range for it."""
        quantizer = self._quantizer(name)
        return x if quantizer is None else quantizer(x)

    def _take_rows(self, table, ids):
        """The rows of a table (R, D), each rounded by itself as a .tflite file has them."""
        small = table.shape[0] * table.shape[1] < SMALL
        if not self.is_fake_quantized or small:
            return ops.take(table, ids, axis=0)
        with AutocastScope(None):
            rows = round_weights(ops.take(table, ids, axis=0), -1)
        return ops.cast(rows, self.compute_dtype)

    def _rounded_kernel(self):
        """The `kernel` (D, units) with each unit's weights rounded by themselves."""
        # Of the variable's own type: cast to half precision before, it would have other steps.
        with AutocastScope(None):
            kernel = round_weights(ops.convert_to_tensor(self.kernel), 0)
        return ops.cast(kernel, self.compute_dtype)


def round_weights(x, axis):
    """Weights rounded to -127 .. 127 times the largest along an axis; gradients pass unchanged."""
    step = ops.maximum(ops.max(ops.abs(x), axis=axis, keepdims=True) / 127, 1e-12)
    return x + ops.stop_gradient(ops.round(x / step) * step - x)


def fake_quantize(model):
    """Makes a built model, or layer, compute as 8-bit integers do.

    Its products round what goes into them and what comes out to ranges that follow the training;
    see `get_ranges`. A model that was fake-quantised before has the ranges of then. A folder of
    `tfnlp.checkpoints.save_model` keeps them, but a .keras file computes in float once it is
    loaded: give it to `set_ranges` then.

    Raises:
        ValueError: for attention by blocks, which never holds the scores to round.
    """
    layers = _layers(model)
    for path, layer in layers.items():
        if getattr(layer, "block_size", None):
            raise ValueError(
                f"{path} has block_size={layer.block_size} and never holds the scores to round; "
                "build the model with block_size=None to fake-quantise it."
            )
    if not all(layer.is_fake_quantized for layer in layers.values()):
        for compiled, name in _compiled(model):
            setattr(compiled, name, None)
    for path, layer in layers.items():
        if not layer.fake_quantizers:
            _add_quantizers(layer, path)
        layer.is_fake_quantized = True


def _add_quantizers(layer, path):
    parent, _, name = path.rpartition("/")
    quantizers = {}
    with keras.name_scope(name, override_parent=parent):
        for tensor, limits in layer.rounded_tensors().items():
            quantizers[tensor] = FakeQuantizer(limits, name=f"{tensor}_range")
            quantizers[tensor].build(None)
    layer._tracker.unlock()  # as `keras.layers.Dense.quantize` does to add its scales
    layer.fake_quantizers = quantizers
    layer._tracker.lock()


@contextlib.contextmanager
def in_float(model):
    """Where it is active, a fake-quantised model computes in float."""
    layers = [layer for layer in _layers(model).values() if layer.is_fake_quantized]
    with _compiled_anew(model):
        for layer in layers:
            layer.is_fake_quantized = False
        try:
            yield
        finally:
            for layer in layers:
                layer.is_fake_quantized = True


@contextlib.contextmanager
def observing(model):
    """Where it is active, ranges of a fake-quantised model follow its calls, and round nothing."""
    quantizers = _quantizers(model).values()
    with _compiled_anew(model):
        for quantizer in quantizers:
            quantizer.observes = True
        try:
            yield
        finally:
            for quantizer in quantizers:
                quantizer.observes = False


@contextlib.contextmanager
def _compiled_anew(model):
    """Where it is active, `predict` and its kin are not those compiled before, nor after it."""
    kept = {place: getattr(*place) for place in _compiled(model)}
    for compiled, name in kept:
        setattr(compiled, name, None)
    try:
        yield
    finally:
        for (compiled, name), function in kept.items():
            setattr(compiled, name, function)


def _compiled(model):
    """Where Keras holds what it compiled: pairs of a model, or one within, and an attribute."""
    models = [layer for layer in model._flatten_layers() if isinstance(layer, keras.Model)]
    names = ("train_function", "test_function", "predict_function")
    return [(model, name) for model in models for name in names]


def get_ranges(model):
    """{name: [low, high]} of a fake-quantised model, floats; empty of another."""
    return {
        name: [float(quantizer.low), float(quantizer.high)]
        for name, quantizer in _quantizers(model).items()
        if quantizer.limits is None
    }


def set_ranges(model, ranges):
    """Fake-quantises a model with the ranges that `get_ranges` gave of one like it.

    Raises:
        ValueError: if they are of another model.
    """
    fake_quantize(model)
    quantizers = {name: q for name, q in _quantizers(model).items() if q.limits is None}
    others = sorted(ranges.keys() ^ quantizers.keys())
    if others:
        raise ValueError(f"The ranges are not this model's: {others[0]} is in one of them alone.")
    for name, (low, high) in ranges.items():
        quantizers[name].low.assign(low)
        quantizers[name].high.assign(high)


def weights_without_ranges(model):
    """A model's weights, as if it were not fake-quantised."""
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, FakeQuantized)]
    ranges = {id(v) for x in layers for q in x.fake_quantizers.values() for v in q.variables}
    return [v for v in model.weights if id(v) not in ranges]


def count_parameters(model):
    """How many numbers a model's weights hold, its ranges apart."""
    return sum(math.prod(v.shape) for v in weights_without_ranges(model))


def _layers(model):
    """{path: layer} of all that can be fake-quantised."""
    layers = model._flatten_layers()
    return {layer.path: layer for layer in layers if isinstance(layer, FakeQuantized)}


def _quantizers(model):
    """{path of its layer/its name: `FakeQuantizer`} of a fake-quantised model."""
    return {
        f"{path}/{name}": quantizer
        for path, layer in _layers(model).items()
        if layer.is_fake_quantized
        for name, quantizer in layer.fake_quantizers.items()
    }
