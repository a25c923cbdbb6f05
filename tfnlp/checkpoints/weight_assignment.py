"""Assignment of a checkpoint's tensors to the variables of a model."""

import numpy as np

from tfnlp.configs import FINE_TUNED_HEADS
from tfnlp.models import projections
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar

# Part of a pretraining head beyond that of a masked LM.
PAIR_HEAD = "pair_classifier"
# Layers that a checkpoint without that head lacks; they start from fresh weights.
HEAD_LAYERS = {
    *("pooler", "classifier", "span", "lm_transform", "lm_norm", "lm_output", "lm_bias"),
    *("discriminator_norm", "discriminator_transform", "discriminator", "lm_softmax"),
    *("decoder_positions", PAIR_HEAD, "word_embeddings", "mix"),
    *("prediction", "prediction_norm"),
    *("task_forward_0", "task_backward_0"),
}
# Layers of the encoder whose tensors a file may hold though the model lacks them.
SPARE_LAYERS = {"pooler", "decoder_positions", "relative_positions", "encoder_embeddings"}
# Weights of other heads.
OTHER_HEADS = (
    *("cls.", "classifier.", "qa_outputs.", "pooler.", "lm_head.", "lm_loss.", "score."),
    *("pre_classifier.", "vocab_transform.", "vocab_layer_norm.", "vocab_projector."),
    *("predictions.", "sop_classifier.", "generator_predictions.", "generator_lm_head."),
    *("discriminator_predictions.", "sequence_summary.", "logits_proj.", "lm_predictions."),
    *("mask_predictions.", "multiple_choice_head.", "start_logits.", "end_logits."),
    *("answer_class.", "crit.", "final_logits_bias"),
)
# Buffers that old versions of `transformers` saved.
BUFFERS = (".position_ids", ".attn.bias", ".attn.masked_bias", "pos_emb.inv_freq")
# Sinusoids, which are computed, and a table that a Marian without ties does not use.
BUFFERS += (".embed_positions.weight", "shared.weight")
# Bytes of weights above which a progress bar is shown.
LARGE = 500_000_000


def assign_weights(model, family, reader, with_head):
    """Copy a checkpoint's tensors into a model's variables, after all are checked.

    Args:
        model: from `build_model`, of the checkpoint's config.
        family: a `CheckpointMap`.
        reader: of the checkpoint's tensors.
        with_head: whether the checkpoint has the model's head.

    Returns:
        The names of the weights that the checkpoint lacks, which start at random.

    Raises:
        InputError: if a tensor is missing, left over or of another shape.
    """
    assignments, fresh = _match_tensors(model, family, reader, with_head)
    _check_left_over(model, family, reader, {name for _, name, _ in assignments})
    if reader.size() > LARGE:
        assignments = progress_bar(assignments, desc="Loading weights", unit="tensor")
    for variable, name, weight in assignments:
        variable.assign(as_variable(reader.read(name), weight, variable.shape))
    for variable in fresh:
        layer = model.get_layer(variable.path.partition("/")[0])
        # Biases and norms have their zeros and ones already.
        if variable.path.endswith("/kernel") or "/projection_" in variable.path:
            variable.assign(layer.kernel_initializer(variable.shape))
        elif variable.path.endswith("_table"):
            variable.assign(layer.embeddings_initializer(variable.shape))
    weights = family.weights(model)
    return [weights[v.path].name if v.path in weights else v.path for v in fresh]


def task_layers(model):
    """Return the names of the layers that fine-tuning starts anew: none of a language model."""
    return _head_layers(model) if model.head in FINE_TUNED_HEADS else set()


def trains_beside_lora(variable, head_layers):
    """Return whether a variable trains where LoRA does: a factor, or one of the `task_layers`."""
    return variable.name.startswith("lora_") or variable.path.partition("/")[0] in head_layers


def _head_layers(model):
    return HEAD_LAYERS | {layer.name for layer in projections(model)}


def stored_names(family, reader):
    """Return {a name as in a `Weight`: the checkpoint's name, with a prefix or of old norms}."""
    return {_plain(name, family): name for name in reader.names()}


def _plain(name, family):
    name = name.removeprefix(family.prefix).replace("LayerNorm.gamma", "LayerNorm.weight")
    return name.replace("LayerNorm.beta", "LayerNorm.bias")


def _match_tensors(model, family, reader, with_head):
    """Return a (variable, tensor name, `Weight`) for each tensor, and the fresh variables."""
    stored, weights = stored_names(family, reader), family.weights(model)
    assignments, fresh, missing = [], [], []
    head_layers = _head_layers(model)
    for variable in model.weights:
        weight, layer = weights.get(variable.path), variable.path.partition("/")[0]
        is_read = weight and (with_head or not weight.head or weight.of_any_head)
        name = is_read and weight.find(stored)
        if name:
            shape = weight.stored_shape(variable.shape, model.text_config)
            if reader.shape(name) != shape:
                raise InputError(
                    f"{reader.description}: tensor {name} has shape {reader.shape(name)}, "
                    f"but config.json asks for {shape}."
                )
            assignments.append((variable, name, weight))
        elif layer in head_layers:
            fresh.append(variable)
            if weight and weight.head and layer != PAIR_HEAD:
                missing.append(weight.name)
        else:
            prefixed = any(name.startswith(family.prefix) for name in reader.names())
            name = family.prefix * prefixed + weight.name
            raise InputError(f"{reader.description} lacks the tensor {name}.")
    of_head = (weight.head and not weight.of_any_head for _, _, weight in assignments)
    if missing and any(of_head):
        raise InputError(
            f"{reader.description} has a {model.head} head without the tensor {missing[0]}; copy "
            "the file again, or start a new head from an encoder alone."
        )
    return assignments, fresh


def _check_left_over(model, family, reader, used):
    """Raise an InputError for tensors that neither this model nor one with another head has."""
    spare = SPARE_LAYERS - {layer.name for layer in model.layers}
    known = {name for row in family.encoder if row.layer in spare for name in row.names}
    others = (*OTHER_HEADS, *family.unread)
    left_over = [
        name
        for name in set(reader.names()) - used
        if _plain(name, family) not in known
        and not _plain(name, family).startswith(others)
        and not name.endswith(BUFFERS)
    ]
    if left_over:
        raise InputError(
            f"{reader.description} has {len(left_over)} tensors that a {family.model_type} of its "
            f"config.json has no place for, such as {min(left_over)}."
        )


def as_variable(tensor, weight, shape):
    """Return a stored tensor in the form of a variable."""
    if weight.part:
        index, count = weight.part
        tensor = np.split(tensor, count, weight.part_axis)[index]
    if weight.transpose:
        # A matrix, or one with its rows (XLNet's heads) or its columns (a convolution's) cut up.
        return tensor.reshape(tensor.shape[0], -1).T if len(shape) == 2 else tensor.T
    return tensor.reshape(shape)


def as_stored(value, weight, config):
    """Return a variable's value in the form of the stored tensor, or of its part of one."""
    value = value.T if weight.transpose else value
    return value.reshape(weight.stored_shape(value.shape, config)) if weight.axes else value
