"""Quantisation-aware training: products as 8-bit integers compute them.

Jacob et al. 2018, 'Quantization and training of neural networks for efficient integer-arithmetic-
only inference'. A fake-quantised layer rounds the inputs, weights and outputs of its products,
each to 256 steps; all else stays in float.
"""

import contextlib
import math

import keras
import numpy as np
from keras import ops

from tfnlp.functional.lookups import table_rows
from tfnlp.functional.products import plain_product
from tfnlp.quantization.rounded_products import RoundedProducts, rounded_rows

# An attention weight of exactly 1 has no step, so that 0 has one and all are 1 / 256 apart.
WEIGHT_RANGE = (0.0, 255 / 256)
# A range so many times wider than the mean size of its numbers has outliers. Of a normal
# distribution, out to 5 deviations, it is 12.5 times.
OUTLIER = 64
# TFLite's output range of every integer tanh.
TANH_RANGE = (-1.0, 127 / 128)
# Attributes of a model without the functions that Keras compiles.
NOT_COMPILED = dict.fromkeys(("train_function", "test_function", "predict_function"))


class FakeQuantizer(keras.layers.Layer):
    """Fake quantisation of a tensor to 256 steps of a range that is calibrated in training.

    The range includes zero. It widens at once to a batch's range, and narrows slowly, as layers
    that are called at several places see several ranges. Replicas use the mean of their ranges.
    Gradients pass unchanged within the range.

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
        self.observes = False  # calibration: follow inputs, do not round them
        self.observer = None  # callback with the mean absolute value of each observed tensor

    def build(self, input_shape):
        if self.limits is None:
            options = {"shape": (), "trainable": False, "aggregation": "mean"}
            self.low = self.add_weight(name="low", initializer="zeros", **options)
            # Not zero, of which no steps can be made.
            high = keras.initializers.Constant(1e-6)
            self.high = self.add_weight(name="high", initializer=high, **options)

    @property
    def step(self):
        """Step size of the quantisation grid, float32 as in a .tflite file."""
        low, high = (ops.cast(bound, "float64") for bound in self.limits or (self.low, self.high))
        return ops.cast((high - low) / 255, "float32")

    @property
    def zero_point(self):
        """Integer in -128 .. 127 that represents 0."""
        low = ops.cast(self.limits[0] if self.limits else self.low, "float32")
        return ops.round(-128 - low / self.step)

    def call(self, inputs, training=None):
        if self.limits is None and (training or self.observes):
            x = ops.stop_gradient(ops.cast(inputs, "float32"))
            self.low.assign(-self._widened(-self.low, ops.max(-x)))
            self.high.assign(self._widened(self.high, ops.max(x)))
        if self.observes:
            if self.observer is not None:
                self.observer(ops.mean(ops.abs(inputs)))
            return inputs
        low, high = self.limits or (self.low, self.high)
        return keras.quantizers.fake_quant_with_min_max_vars(inputs, low, high)

    def _widened(self, bound, batch_bound):
        """Return a bound of the range after a batch with such a bound; at least zero."""
        narrowed = self.momentum * bound + (1 - self.momentum) * ops.maximum(batch_bound, 0.0)
        return ops.maximum(batch_bound, narrowed)


class FakeQuantized:
    """Mixin for layers that `fake_quantize` can quantise.

    Args:
        fake_quantized: whether the layer is from when it is built, or which of its parts are, by
            their paths below it, as `get_config` says it: a saved model is fake-quantised again
            as it is loaded.
    """

    # {tensor name: FakeQuantizer}, empty until `fake_quantize`.
    fake_quantizers = {}  # noqa: RUF012
    is_fake_quantized = False
    # True while products are operators that the converter knows; see `converting`.
    is_converted = False

    def __init__(self, *args, fake_quantized=False, **kwargs):
        super().__init__(*args, **kwargs)
        self._begins_fake_quantized = fake_quantized

    def _post_build(self):
        super()._post_build()
        if self._begins_fake_quantized is True:
            fake_quantize(self)
        elif self._begins_fake_quantized:
            for name, part in self._rounding_parts():
                if name in self._begins_fake_quantized:
                    fake_quantize(part)

    def get_config(self):
        rounded = self.is_fake_quantized
        if not rounded:
            rounded = [name for name, part in self._rounding_parts() if part.is_fake_quantized]
        return super().get_config() | ({"fake_quantized": rounded} if rounded else {})

    def _rounding_parts(self):
        """Return the (name, layer) pairs of `parts` that can be fake-quantised."""
        return [(name, part) for name, part in parts(self) if isinstance(part, FakeQuantized)]

    def rounded_tensors(self):
        """Return {tensor name: how it is rounded} for the tensors of the layer's products.

        None is for a range that follows the training, (low, high) for a fixed one. "part.tensor"
        is a tensor that a part of the layer rounds, by its own quantizer.
        """
        return {}

    def quantizer(self, name):
        """Return the `FakeQuantizer` of a tensor, a part's if that rounds it; None for others."""
        rounding = self.rounded_tensors().get(name) if self.is_fake_quantized else None
        if isinstance(rounding, str):
            part, tensor = rounding.split(".")
            return getattr(self, part).quantizer(tensor)
        return self.fake_quantizers.get(name) if self.is_fake_quantized else None

    def products(self, training=None):
        """Return the function `product(name, compute, **factors)` for one call of the layer."""
        return RoundedProducts(self, training) if self.is_fake_quantized else plain_product

    def lookup(self, table, ids):
        """Return the rows `ids` of a table (R, D), rounded if the layer is fake-quantised."""
        if self.is_fake_quantized:
            return rounded_rows(table, ids, self.compute_dtype)
        return table_rows(table, ids)


def fake_quantize(model):
    """Make a built model or layer compute as 8-bit integers do.

    Its products round what goes into them and what comes out to ranges that follow the training;
    see `get_ranges`. A model that was fake-quantised before has the ranges of then. A folder of
    `tfnlp.checkpoints.save_model` keeps them, and so does a .keras file, but for what stands
    within layers that are not of this package. To convert a model to a .tflite yourself, trace it
    within `converting(model)`, as `distill.export.tflite` does.

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
        for compiled in _models(model):
            for name in NOT_COMPILED:
                setattr(compiled, name, None)
    for path, layer in layers.items():
        if not layer.fake_quantizers:
            _add_quantizers(layer, path)
        layer.is_fake_quantized = True


def has_products(model):
    """Return whether a built model has products to round; a recurrent one has none."""
    return any(layer.rounded_tensors() for layer in _layers(model).values())


def parts(layer):
    """Yield the layers within a layer, each with its path below it."""
    for part in layer._flatten_layers(include_self=False):
        if part.path:
            yield part.path.removeprefix(f"{layer.path}/"), part


def _add_quantizers(layer, path):
    parent, _, name = path.rpartition("/")
    quantizers = {}
    with keras.name_scope(name, override_parent=parent):
        for tensor, limits in layer.rounded_tensors().items():
            if isinstance(limits, str):
                continue
            quantizers[tensor] = FakeQuantizer(limits, name=f"{tensor}_range")
            quantizers[tensor].build(None)
    layer._tracker.unlock()  # as `keras.layers.Dense.quantize` does to add its scales
    layer.fake_quantizers = quantizers
    layer._tracker.lock()


def in_float(model):
    """Temporarily compute a fake-quantised model in float."""
    return _changed(model, _rounding_layers(model), is_fake_quantized=False)


def converting(model):
    """Temporarily put a fake-quantised model in a form that TFLite's converter understands.

    Otherwise its attention emulates one integer operation of LiteRT by several operations, which
    the converter would leave in float.
    """
    return _changed(model, _rounding_layers(model), is_converted=True)


@contextlib.contextmanager
def observing(model, sizes=None):
    """Have the ranges of a fake-quantised model follow its calls, and round nothing.

    Args:
        model: the model.
        sizes: a dict that gets {name as of `get_ranges`: the mean size in each call}; or None.
    """
    quantizers = _quantizers(model)
    with _changed(model, quantizers.values(), observes=True, observer=None):
        for name, quantizer in quantizers.items() if sizes is not None else ():
            quantizer.observer = sizes.setdefault(name, []).append
        yield


def leave_outliers_in_float(model, sizes):
    """Stop rounding the layers whose ranges a few numbers set, so that the others would vanish.

    In some encoders one unit of a few tokens is hundreds of times larger than all others (Kovaleva
    et al. 2021, 'BERT busters'): 256 steps of its range leave a few steps for the rest.

    Args:
        model: a fake-quantised model.
        sizes: what `observing` gave of it.

    Returns:
        The paths of the layers that compute in float from now on, sorted.
    """
    paths = set()
    for name, (low, high) in get_ranges(model).items():
        if high - low > OUTLIER * np.mean([float(size) for size in sizes[name]]):
            paths.add(name.rpartition("/")[0])
    layers = _layers(model)
    for path in paths:
        layers[path].is_fake_quantized = False
    return sorted(paths)


def kernels_in_float(model):
    """Return the kernels (D, units) of the dense layers that `leave_outliers_in_float` left."""
    return [
        np.asarray(layer.kernel)
        for layer in _layers(model).values()
        if layer.fake_quantizers and not layer.is_fake_quantized and hasattr(layer, "kernel")
    ]


@contextlib.contextmanager
def _changed(model, parts, **values):
    """Temporarily set attributes of parts of a model, and discard what Keras has compiled."""
    changes = [(x, values) for x in parts] + [(x, NOT_COMPILED) for x in _models(model)]
    before = [(x, name, getattr(x, name)) for x, values in changes for name in values]
    for x, values in changes:
        for name, value in values.items():
            setattr(x, name, value)
    try:
        yield
    finally:
        for change in before:
            setattr(*change)


def _models(model):
    """Return the models that hold compiled functions, nested ones included."""
    return [layer for layer in model._flatten_layers() if isinstance(layer, keras.Model)]


def get_ranges(model):
    """Return {name: [low, high]} of a fake-quantised model, in floats; empty for others."""
    return {
        name: [float(np.asarray(bound)) for bound in (quantizer.low, quantizer.high)]
        for name, quantizer in _quantizers(model).items()
        if quantizer.limits is None
    }


def set_ranges(model, ranges):
    """Fake-quantise a model with the `get_ranges` of a model of the same structure.

    Raises:
        ValueError: if the names of the ranges are not those of the model.
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
    """Return a model's weights without its quantisation ranges."""
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, FakeQuantized)]
    ranges = {id(v) for x in layers for q in x.fake_quantizers.values() for v in q.variables}
    return [v for v in model.weights if id(v) not in ranges]


def count_parameters(model):
    """Return the number of parameters of a model, without its quantisation ranges."""
    return sum(math.prod(v.shape) for v in weights_without_ranges(model))


def _layers(model):
    """Return {path: layer} of all layers that can be fake-quantised."""
    layers = model._flatten_layers()
    return {layer.path: layer for layer in layers if isinstance(layer, FakeQuantized)}


def _rounding_layers(model):
    return [layer for layer in _layers(model).values() if layer.is_fake_quantized]


def _quantizers(model):
    """Return {layer path/name: `FakeQuantizer`} of a fake-quantised model."""
    return {
        f"{path}/{name}": quantizer
        for path, layer in _layers(model).items()
        if layer.is_fake_quantized
        for name, quantizer in layer.fake_quantizers.items()
    }
