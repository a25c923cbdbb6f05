"""Masked language models that compute logits at masked positions only."""

import keras
from keras import ops

from tfnlp.layers import EncoderBlock, MultiHeadAttention
from tfnlp.models import MASKED_LMS
from tfnlp.objectives.masking import POSITIONS
from tfnlp.utils.errors import InputError


class TakePositions(keras.layers.Layer):
    """Gather of states (B, L, D) at positions (B, P), to (B, P, D)."""

    def call(self, states, positions):
        batch, length = ops.shape(states)[:2]
        rows = ops.arange(batch, dtype=positions.dtype)[:, None] * length + positions
        return ops.take(ops.reshape(states, (-1, states.shape[-1])), rows, axis=0)

    def compute_output_shape(self, states_shape, positions_shape):
        return (*positions_shape, states_shape[-1])


def predict_at_positions(model):
    """Return a masked language model that computes logits only at masked positions.

    Args:
        model: a `TextModel` with the head "masked_lm" or "pretraining".

    Returns:
        A functional `keras.Model` with the same weights, the extra input `masked_positions` (B,
        P), and `logits` (B, P, V); its other outputs are unchanged.

    Raises:
        InputError: if the model has another head.
    """
    _check_head(model)
    states = model.get_layer("lm_transform").input
    positions = keras.Input((None,), dtype="int32", name=POSITIONS)
    few = TakePositions(name="hidden_states_at_positions")(states, positions)
    return keras.Model(
        model.input | {POSITIONS: positions},
        model.output | {"logits": _part(states, model.output["logits"], "lm_head")(few)},
        name=model.name,
    )


def logits_at_positions(model):
    """Return a masked language model that computes logits at masked positions and nothing else.

    If the last block is an `EncoderBlock` with plain attention, it computes its queries and
    everything after them only at these positions (and at the first, for pair logits).

    Args:
        model: a `TextModel` with the head "masked_lm" or "pretraining".

    Returns:
        A functional `keras.Model` with the same weights and the extra input `masked_positions` (B,
        P), to `logits` (B, P, V) and, with "pretraining", `pair_logits` (B, 2).

    Raises:
        InputError: if the model has another head.
    """
    _check_head(model)
    names = ("logits", "pair_logits") if model.head == "pretraining" else ("logits",)
    last = _last_block(model)
    if last is None:
        predicting = predict_at_positions(model)
        return keras.Model(
            predicting.input, {key: predicting.output[key] for key in names}, name=model.name
        )
    block, states = last
    positions = keras.Input((None,), dtype="int32", name=POSITIONS)
    places = positions
    if "pair_logits" in names:
        places = ops.concatenate([ops.zeros_like(positions[:, :1]), positions], axis=1)
    few = block(
        TakePositions(name="states_at_positions")(states, places),
        attention_mask=model.input["padding_mask"][:, None, :],
        value=states,
    )
    outputs = {}
    if "pair_logits" in names:
        first, few = few[:, 0], few[:, 1:]
        vector = model.get_layer("pooler").input
        outputs["pair_logits"] = _part(vector, model.output["pair_logits"], "pair_head")(first)
    transform = model.get_layer("lm_transform").input
    outputs["logits"] = _part(transform, model.output["logits"], "lm_head")(few)
    return keras.Model(model.input | {POSITIONS: positions}, outputs, name=model.name)


def _last_block(model):
    """Return the last block and its input states if it can take fewer queries, else None."""
    count = model.text_config.num_layers
    names = {layer.name for layer in model.layers}
    if f"encoder_{count - 1}" not in names or model.text_config.enhanced_mask_decoder:
        return None
    block = model.get_layer(f"encoder_{count - 1}")
    if type(block) is not EncoderBlock or type(block.attention) is not MultiHeadAttention:
        return None
    before = f"encoder_{count - 2}" if count > 1 else "embeddings"
    states = keras.tree.flatten(model.get_layer(before).output)[0]
    return block, states


def _part(inputs, outputs, name):
    return keras.Model(inputs, outputs, name=name)


def _check_head(model):
    if model.head not in MASKED_LMS:
        raise InputError(
            f"Model {model.name} has the head {model.head!r}, which predicts no hidden tokens; "
            "give a masked language model."
        )
