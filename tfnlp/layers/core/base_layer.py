"""Base class of all layers: configs, weight options, output shapes, quantised parts."""

import inspect
from inspect import Parameter
from typing import Unpack, get_args, is_typeddict

import keras

from tfnlp.layers.core.dense import Dense
from tfnlp.layers.core.weight_options import LayerOptions, weight_options
from tfnlp.quantization.fake_quantization import FakeQuantized, parts

# Initializers where none is given.
INITIALIZERS = {
    "kernel_initializer": "glorot_uniform",
    "bias_initializer": "zeros",
    "embeddings_initializer": "uniform",
}

VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
# Objects by the last word of the argument that takes them.
_MODULES = {
    "initializer": keras.initializers,
    "regularizer": keras.regularizers,
    "constraint": keras.constraints,
}


class ClassSignature:
    """`__signature__` of a layer's class, with the options that it passes on to its parents.

    `inspect` reads it, as `__new__` of Keras hides the constructor. That of an instance is of its
    call.
    """

    def __get__(self, instance, cls):
        if instance is not None:
            raise AttributeError("__signature__")
        arguments = constructor_arguments(cls, keras.Operation)
        for name in cls.OPTIONS:
            arguments.setdefault(name, Parameter(name, Parameter.KEYWORD_ONLY, default=None))
        return inspect.Signature(arguments.values())


class BaseLayer(FakeQuantized, keras.layers.Layer):
    """Base class of all layers: configs, weight options, output shapes, quantised parts.

    All arguments of the constructors are attributes of the same name; the config is made of
    these (see `fields`). So are the options of weights in the `TypedDict` that the constructor of
    a subclass unpacks into `kwargs`, such as `WeightOptions`. A subclass has a
    `compute_output_spec`, by which `compute_output_shape` goes, or a `compute_output_shape`.

    Args:
        kernel_regularizer, bias_regularizer, embeddings_regularizer: for the kernels, the biases
            and the embedding tables, those of parts included; none if None.
        kernel_constraint, bias_constraint, embeddings_constraint: likewise.
        kernel_initializer, bias_initializer, embeddings_initializer: likewise; `INITIALIZERS` if
            None.
        quantized_parts: the dtype policies of the parts that `quantize` has changed, by their
            paths below the layer, as `get_config` gives them: a saved model is quantised again
            as it is loaded.
    """

    # Names of the options of weights.
    OPTIONS = ()
    # False if the output has other positions than the first input, or none: it has no mask then.
    keeps_positions = True
    __signature__ = ClassSignature()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        annotations = getattr(vars(cls).get("__init__"), "__annotations__", {})
        unpacked = get_args(annotations.get("kwargs"))
        if unpacked and is_typeddict(unpacked[0]):
            cls.OPTIONS = weight_options(unpacked[0])

    def __init__(self, *, quantized_parts=None, **kwargs: Unpack[LayerOptions]):
        options = {name: kwargs.pop(name, None) or INITIALIZERS.get(name) for name in self.OPTIONS}
        super().__init__(**kwargs)
        self._quantized_parts = dict(quantized_parts or {})
        for name, value in options.items():
            setattr(self, name, _MODULES[name.rsplit("_", 1)[-1]].get(value))

    def options(self, *kinds):
        """Return the weight options by name, for a sub-layer; only those of `kinds` if given.

        Of the initializers only that of the biases is among them.
        """
        names = [name for name in self.OPTIONS if not kinds or name.split("_")[0] in kinds]
        names = [n for n in names if n == "bias_initializer" or not n.endswith("initializer")]
        options = {name: getattr(self, name) for name in names}
        if "bias_initializer" in options:
            # One initializer instance would give every bias the same values.
            options["bias_initializer"] = self.bias_initializer.clone()
        return options

    def _weight(self, kind, name, shape, initializer, **kwargs):
        """Add a weight of kind "kernel", "bias" or "embeddings"."""
        return self.add_weight(
            name=name,
            shape=shape,
            initializer=initializer.clone(),
            regularizer=getattr(self, f"{kind}_regularizer"),
            constraint=getattr(self, f"{kind}_constraint"),
            **kwargs,
        )

    def _dense(self, units, name, initializer=None, **kwargs):
        """Create a `Dense` sub-layer; `initializer` defaults to `kernel_initializer`."""
        return Dense(
            units,
            kernel_initializer=(initializer or self.kernel_initializer).clone(),
            dtype=self.dtype_policy,
            name=name,
            **self.options("kernel", "bias") | kwargs,
        )

    def _dropout_layer(self, rate):
        return keras.layers.Dropout(rate, dtype=self.dtype_policy)

    def _post_build(self):
        super()._post_build()
        if not self.trainable:
            for layer in self._flatten_layers(include_self=False, recursive=False):
                layer.trainable = False
        for name, layer in parts(self):
            if name in self._quantized_parts and layer.quantization_mode is None:
                layer.dtype_policy = keras.dtype_policies.get(self._quantized_parts[name])

    def compute_output_shape(self, *shapes, **named_shapes):
        """Return the output shape for these input shapes, by `compute_output_spec`."""

        def tensors(shapes):
            return keras.tree.map_shape_structure(keras.KerasTensor, shapes)

        named = {name.removesuffix("_shape"): tensors(x) for name, x in named_shapes.items() if x}
        spec = self.compute_output_spec(*(x and tensors(x) for x in shapes), **named)
        return keras.tree.map_structure(lambda tensor: tensor.shape, spec)

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask if self.keeps_positions else None

    def _specs(self, *shapes):
        """Return symbolic tensors of these shapes and the compute dtype: one, or a tuple."""
        tensors = tuple(keras.KerasTensor(shape, dtype=self.compute_dtype) for shape in shapes)
        return tensors if len(tensors) > 1 else tensors[0]

    def fields(self):
        """Return the constructor arguments by name, without those of `BaseLayer` and Keras.

        Each is the attribute of its name; a subclass that keeps one elsewhere overrides this.
        """
        names = constructor_arguments(type(self), BaseLayer)
        return {name: getattr(self, name) for name in (*names, *self.OPTIONS)}

    def get_config(self):
        config = super().get_config()
        for name, value in self.fields().items():
            # Initializers, regularizers, constraints, functions and layers.
            config[name] = serialize_shared(value) if callable(value) else value
        quantized = {
            name: keras.dtype_policies.serialize(layer.dtype_policy)
            for name, layer in parts(self)
            if layer.quantization_mode is not None
        }
        return config | ({"quantized_parts": quantized} if quantized else {})

    @classmethod
    def from_config(cls, config):
        serialized = {k: x for k, x in config.items() if isinstance(x, dict) and "class_name" in x}
        return super().from_config(config | {k: deserialize(x) for k, x in serialized.items()})


def constructor_arguments(cls, end):
    """Return {name: parameter} of the constructors of a class and its parents before `end`.

    Those of its own constructor come first; those of its parents are by keyword alone.
    """
    arguments = {}
    parents = cls.__mro__[: cls.__mro__.index(end)]
    for constructor in (vars(x)["__init__"] for x in parents if "__init__" in vars(x)):
        is_own = not arguments
        for name, argument in inspect.signature(constructor).parameters.items():
            if name != "self" and argument.kind not in VARIADIC:
                by_name = argument.replace(kind=Parameter.KEYWORD_ONLY)
                arguments.setdefault(name, argument if is_own else by_name)
    return arguments


def check_choice(name, value, choices):
    """Raise a ValueError for a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} must be one of {tuple(choices)}.")


def check_choices(name, values, choices):
    """Raise a ValueError for values of which one is none of the choices, such as a string."""
    if not {*values} <= {*choices}:
        raise ValueError(f"{name}={values!r} must be a tuple of {tuple(choices)}.")


def check_layer(name, layer, example):
    """Raise a ValueError for what is neither a layer nor None; `example` shows one."""
    if not isinstance(layer, keras.layers.Layer | None):
        raise ValueError(f"{name}={layer!r} must be a layer, such as {example}, or None.")


def check_states(**shapes):
    """Raise a ValueError for a shape that is neither None nor (batch, length, width)."""
    for name, shape in shapes.items():
        if shape is not None and len(shape) != 3:
            raise ValueError(
                f"{name} has shape {tuple(shape)}, but must have 3 axes, (batch, length, width)."
            )


def serialize_shared(x):
    """Return the config of an object, with its identity if a whole model is saved."""
    # Keras says which object it is from the second time on.
    keras.saving.serialize_keras_object(x)
    return keras.saving.serialize_keras_object(x)


def deserialize(config):
    """Return the object of a config, a layer unbuilt: its weights' paths begin with its parent."""
    config = {key: value for key, value in config.items() if key != "build_config"}
    return keras.saving.deserialize_keras_object(config)


def check_shared(config, what):
    """Raise a ValueError, starting with `what`, for a shared layer's config without identity."""
    if "shared_object_id" not in config:
        raise ValueError(
            f"{what}, which a copy of one alone cannot keep; save the model and load it in place "
            "of cloning it."
        )
