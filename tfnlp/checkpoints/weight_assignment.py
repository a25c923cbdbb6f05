"""Assignment of a checkpoint's tensors to the variables of a model."""

import numpy as np

from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar

# Part of a pretraining head beyond that of a masked LM.
PAIR_HEAD = "pair_classifier"
# Layers that a checkpoint without that head lacks; they start from fresh weights.
HEAD_LAYERS = {
    *("pooler", "classifier", "span", "lm_transform", "lm_norm", "lm_output", "lm_bias"),
    *("discriminator_norm", "discriminator_transform", "discriminator", "lm_softmax"),
    *("decoder_positions", PAIR_HEAD),
}
# Weights of other heads.
OTHER_HEADS = (
    *("cls.", "classifier.", "qa_outputs.", "pooler.", "lm_head.", "lm_loss.", "score."),
    *("pre_classifier.", "vocab_transform.", "vocab_layer_norm.", "vocab_projector."),
    *("predictions.", "sop_classifier.", "generator_predictions.", "generator_lm_head."),
    *("discriminator_predictions.", "sequence_summary.", "logits_proj.", "lm_predictions."),
    *("mask_predictions.", "multiple_choice_head.", "start_logits.", "end_logits."),
    *("answer_class.", "crit.", "task:", "final_logits_bias"),
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
        family: a `Family`.
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
        variable.assign(_as_variable(reader.read(name), weight, variable.shape))
    variables = {v.path: v for v in model.weights}
    for weight in fresh:
        layer = model.get_layer(weight.path.partition("/")[0])
        variable = variables[weight.path]
        # Biases and norms have their zeros and ones already.
        if weight.path.endswith("kernel") or "/projection_" in weight.path:
            variable.assign(layer.kernel_initializer(variable.shape))
        elif weight.path.endswith("_table"):
            variable.assign(layer.embeddings_initializer(variable.shape))
    return [weight.name for weight in fresh]


def _match_tensors(model, family, reader, with_head):
    """Return a (variable, tensor name, `Weight`) for each tensor, and the fresh `Weight`s."""
    names, prefix = set(reader.names()), encoder_prefix(family, reader)
    variables = {v.path: v for v in model.weights}
    assignments, fresh = [], []
    for weight in family.weights(model.text_config, model.head):
        name = None
        if with_head or not weight.head:
            name = stored_name(weight, "" if weight.head else prefix, names)
        if name is None:
            if weight.path.partition("/")[0] not in HEAD_LAYERS:
                raise InputError(f"{reader.description} lacks the tensor {prefix}{weight.name}.")
            fresh.append(weight)
            continue
        shape = _stored_shape(weight, variables[weight.path].shape)
        if reader.shape(name) != shape:
            raise InputError(
                f"{reader.description}: tensor {name} has shape {reader.shape(name)}, "
                f"but config.json asks for {shape}."
            )
        assignments.append((variables[weight.path], name, weight))
    missing = [w.name for w in fresh if w.head and not w.path.startswith(PAIR_HEAD)]
    if missing and any(weight.head for _, _, weight in assignments):
        raise InputError(
            f"{reader.description} has a {model.head} head without the tensor {missing[0]}; copy "
            "the file again, or start a new head from an encoder alone."
        )
    return assignments, fresh


def _check_left_over(model, family, reader, used):
    """Raise an InputError for tensors that neither this model nor one with another head has."""
    prefix = encoder_prefix(family, reader)
    others = {
        prefix + name
        for head in family.architectures
        for weight in family.weights(model.text_config, head)
        for name in (weight.name, *weight.other_names)
        if not weight.head
    }
    others |= {prefix + name for name in family.unread(model.text_config)}
    left_over = [
        name
        for name in set(reader.names()) - used - others
        if not name.removeprefix(prefix).startswith(OTHER_HEADS)
        and not name.startswith(OTHER_HEADS)
        and not name.endswith(BUFFERS)
    ]
    if left_over:
        raise InputError(
            f"{reader.description} has {len(left_over)} tensors that a {family.model_type} of its "
            f"config.json has no place for, such as {min(left_over)}."
        )


def encoder_prefix(family, reader):
    """Return a checkpoint's prefix of encoder names."""
    return family.prefix if any(n.startswith(family.prefix) for n in reader.names()) else ""


def stored_name(weight, prefix, names):
    """Return the name of a weight in a checkpoint, with or without prefix, old or new; or None."""
    spellings = (*weight.other_names, weight.name)
    for name in (start + spelling for spelling in spellings for start in (prefix, "")):
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        old = old.replace("LayerNorm.bias", "LayerNorm.beta")
        for candidate in (name, old):
            if candidate in names:
                return candidate
    return None


def part_axis(weight):
    """Return the axis of a stored tensor along which variables are parts."""
    return 0 if weight.transpose else -1


def _as_variable(tensor, weight, shape):
    """Return a stored tensor in the form of a variable."""
    if weight.part:
        index, count = weight.part
        tensor = np.split(tensor, count, part_axis(weight))[index]
    if weight.transpose:
        # A matrix, or one with its rows (XLNet's heads) or its columns (a convolution's) cut up.
        return tensor.reshape(tensor.shape[0], -1).T if len(shape) == 2 else tensor.T
    return tensor.reshape(shape)


def _stored_shape(weight, shape):
    """Return the shape of a stored tensor for a variable's shape."""
    if weight.shape:
        return tuple(weight.shape)
    shape = list(shape)[:: -1 if weight.transpose else 1]
    if weight.part:
        shape[part_axis(weight)] *= weight.part[1]
    return tuple(shape)
