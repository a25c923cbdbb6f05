"""Conversion of models from keras-hub and to it, in memory, and our blocks within its models.

Decisions: docs/decisions/checkpoints.md.
"""

import dataclasses
import functools
import inspect

import keras
import keras_hub
import numpy as np
from absl import logging
from keras import ops

from tfnlp.checkpoints.keras_hub_map import (
    PRESETS,
    read_backbone,
    read_preset,
    read_task,
    without_segments,
)
from tfnlp.checkpoints.tensors import HeldTensors
from tfnlp.checkpoints.weight_assignment import as_stored, assign_weights
from tfnlp.configs import TEXT_CLASS_HEADS
from tfnlp.functional.activations import get_activation
from tfnlp.layers import EncoderBlock, MultiHeadAttention
from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.models import build_model, config_of
from tfnlp.text.tokenizers.keras_hub_tokenizer import convert_tokenizer
from tfnlp.utils.errors import InputError, unknown_name

# Our config fields that have no effect on outputs, or that `_settings` finds in layers.
UNCHECKED = {"activation", "layer_norm_epsilon", "pad_token_id", "initializer_range"}


class VariableReader(HeldTensors):
    """Reader of a live model's variables by path.

    `family` and `config` are those that `read_backbone` returns for the backbone or task `model`.
    """

    def __init__(self, model, family, config):
        super().__init__(f"keras-hub's {type(model).__name__}", merged_weights(model))
        self._tensors |= family.computed(config, self.read)

    def read(self, name):
        """Return a tensor as a NumPy array of float32."""
        return ops.convert_to_numpy(self._tensors[name]).astype("float32", copy=False)


def open_preset(folder):
    """Return the reader of a preset folder, whose weights keras-hub loads.

    Raises:
        InputError: if keras-hub cannot load them.
    """
    family, config, _ = read_preset(folder)
    try:
        if read_task(folder) == family.architectures.get("classifier"):
            model = keras_hub.models.TextClassifier.from_preset(str(folder), preprocessor=None)
        else:
            model = keras_hub.models.Backbone.from_preset(str(folder))
    except (OSError, ValueError) as e:
        reason = str(e).strip().partition("\n")[0].rstrip(".:")
        raise InputError(
            f"{folder}: keras-hub cannot load the weights ({reason}); copy the preset again."
        ) from None
    return VariableReader(model, family, config)


def from_keras_hub(model, activation=None, **options):
    """Build the model that has the weights and the outputs of a keras-hub model.

    Args:
        model: a backbone of BERT, RoBERTa, DistilBERT, ALBERT, ELECTRA, DeBERTa v3, XLNet or
            GPT-2, or a task on one. A text classifier and a causal LM keep their head, whose
            outputs are logits; of another task it is the backbone.
        activation: of the blocks, in place of keras-hub's: "gelu" for a BERT or ELECTRA that was
            trained with the exact GELU, where keras-hub has the tanh approximation.
        options: as `load_model` takes them.

    Returns:
        A `TextModel`, and the tokenizer of the task's preprocessor; None without one.

    Raises:
        InputError: if tfnlp lacks the model or the tokenizer, or weights are quantised.
    """
    backbone = getattr(model, "backbone", model)
    preprocessor = getattr(model, "preprocessor", None)
    tokenizer = preprocessor and convert_tokenizer(preprocessor.tokenizer)
    family, config = _read_backbone(backbone, tokenizer and tokenizer.pad_token_id)
    fields = {field: value for *_, field, value in _settings(backbone)}
    fields |= {"activation": activation} if activation else {}
    heads = {name: head for head, name in family.architectures.items()}
    head = heads.get(type(model).__name__)
    if head == "classifier":
        fields["classifier_dropout"] = model.output_dropout.rate
    config = dataclasses.replace(config, **fields)
    ours = build_model(config, head, getattr(model, "num_classes", None), **options)
    assign_weights(ours, family, VariableReader(model, family, config), head is not None)
    return ours, tokenizer


def to_keras_hub(model, exact=True, dropout=None):
    """Build the keras-hub model that has the weights and the outputs of a model.

    Args:
        model: a `TextModel` of a family that `from_keras_hub` takes.
        exact: whether the result computes as `model` where keras-hub's class does not: another
            GELU or epsilon, or several texts in XLNet. A preset that is saved of it does not.
        dropout: the one rate that keras-hub's backbone has; where None, that of the model, whose
            rates must be equal.

    Returns:
        keras-hub's text classifier or causal LM, without a preprocessor, for a model with that
        head; else its backbone.

    Raises:
        InputError: if keras-hub lacks the family, or a value of the config.
    """
    config = config_of(model)
    if config.model_type not in PRESETS:
        raise unknown_name("keras-hub's family", config.model_type, PRESETS)
    family = PRESETS[config.model_type]
    make = getattr(keras_hub.models, family.architectures[None])
    arguments = inspect.signature(make).parameters
    fields = {
        theirs: getattr(config, ours)
        for theirs, ours in family.fields.items()
        if theirs in arguments
    }
    result = make(**fields | ({} if dropout is None else {"dropout": dropout}))
    _check_fields(config, model.head, result, dropout)
    if exact:
        _compute_as(result, config)
    if model.head and family.architecture(model.head):
        make = getattr(keras_hub.models, family.architecture(model.head))
        options = {}
        if model.head in TEXT_CLASS_HEADS:
            options["num_classes"] = model.output["logits"].shape[-1]
            if config.model_type != "deberta-v2":  # there it is another dropout's
                options["dropout"] = config.head_dropout
        result = make(result, preprocessor=None, **options)
    _assign(result, family, model)
    return result


def with_encoder_blocks(model, make_attention=MultiHeadAttention.from_keras):
    """Put our `EncoderBlock`s with the same weights in the place of `TransformerEncoder`s.

    Args:
        model: a functional model with `keras_hub.layers.TransformerEncoder`s, such as the
            backbones of BERT, ELECTRA or XLM-RoBERTa.
        make_attention: function from the `keras.layers.MultiHeadAttention` of a block to the
            attention layer in its place.

    Returns:
        A functional model, which shares all other layers, and their weights, with `model`.
    """

    @functools.cache  # ALBERT calls a layer several times
    def replaced(layer):
        if not isinstance(layer, keras_hub.layers.TransformerEncoder):
            return layer
        return _encoder_block(layer, make_attention(layer._self_attention_layer))

    def call(layer, *arguments, **options):
        if isinstance(layer, EncoderBlock) and options.get("padding_mask") is not None:
            masks = [options.pop("padding_mask")[:, None], options.get("attention_mask")]
            options["attention_mask"] = masks[0] if masks[1] is None else ops.logical_and(*masks)
        return layer(*arguments, **options)

    return keras.models.clone_model(model, clone_function=replaced, call_function=call)


def _encoder_block(layer, attention):
    """Return the `EncoderBlock` of a `TransformerEncoder` and an attention layer."""
    block = EncoderBlock(
        layer.num_heads,
        layer.intermediate_dim,
        _activation_name(layer.activation),
        attention=attention,
        dropout=layer.dropout,
        norm_first=layer.normalize_first,
        layer_norm_epsilon=layer.layer_norm_epsilon,
        trainable=layer.trainable,
        dtype=layer.dtype_policy,
        name=layer.name,
    )
    block.build((None, None, layer._feedforward_output_dense.units))
    pairs = (
        (block.attention_norm, layer._self_attention_layer_norm),
        (block.feed_forward.intermediate, layer._feedforward_intermediate_dense),
        (block.feed_forward.output_dense, layer._feedforward_output_dense),
        (block.feed_forward_norm, layer._feedforward_layer_norm),
    )
    for ours, theirs in pairs:
        ours.set_weights([*merged_weights(theirs).values()])
    return block


def _activation_name(function):
    """Return our name of an activation, else the function's."""
    names = {"gelu_approximate": "gelu_tanh", "fused_gelu": "gelu"}
    return names.get(function.__name__, function.__name__)


def _settings(backbone):
    """Yield (layer, attribute, config field, its value) of what a backbone's config lacks."""
    for layer in backbone._flatten_layers():
        if isinstance(layer, keras.layers.LayerNormalization):
            yield layer, "epsilon", "layer_norm_epsilon", layer.epsilon
        dense = getattr(layer, "_feedforward_intermediate_dense", None)
        if dense is not None:
            yield dense, "activation", "activation", _activation_name(dense.activation)


def _compute_as(backbone, config):
    """Make a backbone's layers compute as a config says, and warn of what no preset keeps."""
    changed = set()
    for layer, attribute, field, value in [*_settings(backbone)]:
        if (due := getattr(config, field)) != value:
            changed.add(f"{field} ({value})")
            setattr(layer, attribute, get_activation(due) if field == "activation" else due)
    if config.model_type == "xlnet":
        changed.add("order of texts")
        _transpose_texts(backbone)
    if changed:
        logging.warning(
            "This %s computes as the model does, but a preset saved of it has keras-hub's own %s.",
            type(backbone).__name__,
            ", ".join(sorted(changed)),
        )


def _transpose_texts(backbone):
    """Make an XLNet transpose the mask (B, L) and the positions (2L, B, D) that it reshapes."""
    mask = backbone.get_layer("encoder_block_attn_mask_layer")
    embedding = backbone.get_layer("content_query_embedding")
    make_masks, embed = mask.call, embedding.call

    def embed_texts(token_ids):
        words, positions = embed(token_ids)
        texts, length, width = ops.shape(positions)
        positions = ops.reshape(positions, (length, texts, width))
        return words, ops.transpose(positions, (1, 0, 2))

    mask.call = lambda x: make_masks(ops.reshape(ops.transpose(x), ops.shape(x)))
    embedding.call = embed_texts


def _read_backbone(backbone, pad_token_id=None):
    """Return the `CheckpointMap` and the config of a live backbone."""
    cls = type(backbone)
    registered, fields = keras.saving.get_registered_name(cls), backbone.get_config()
    return read_backbone(registered, fields, cls.__name__, pad_token_id)[:2]


def _check_fields(config, head, backbone, dropout):
    """Raise an InputError for fields of a config that a backbone has other values for."""
    _, theirs = _read_backbone(backbone)
    unchecked = UNCHECKED | {"classifier_dropout"}
    unchecked |= {name for name in vars(config) if dropout is not None and "dropout" in name}
    unchecked |= set() if head == "causal_lm" else {"tie_embeddings"}
    for name, value in vars(config).items():
        if name not in unchecked and value not in (None, getattr(theirs, name)):
            hint = "; give dropout=, one rate for all" if "dropout" in name else ""
            raise InputError(
                f"{type(backbone).__name__} cannot have {name}={value!r}, only "
                f"{getattr(theirs, name)!r}{hint}."
            )


def _assign(theirs, family, model):
    """Copy a model's weights to keras-hub's variables, and warn of those without a place."""
    weights, places = family.weights(model), {x.path: x for x in theirs.weights}
    tensors = {
        weight.name: as_stored(np.asarray(value), weight, config_of(model))
        for path, value in merged_weights(model).items()
        if (weight := weights.get(path))
    }
    tensors = without_segments(config_of(model), tensors)
    for name in places.keys() & tensors.keys():
        places[name].assign(tensors[name])
    kept = {weight.layer for weight in weights.values() if weight.name in places}
    left_out = {variable.path.partition("/")[0] for variable in model.weights} - kept
    random = places.keys() - tensors.keys()
    if left_out:
        logging.warning("keras-hub has no place for the model's %s.", ", ".join(sorted(left_out)))
    if random:
        logging.warning("Not in the model, so random: %s.", ", ".join(sorted(random)))
