"""Masked language models that compute logits at masked positions only."""

import keras
from keras import ops

from tfnlp.layers import EncoderBlock, MultiHeadAttention
from tfnlp.models.shared_parts import visible_tokens
from tfnlp.objectives.batches.masking import POSITIONS


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
    """
    states = model.get_layer("lm_transform").input
    positions = keras.Input((None,), dtype="int32", name=POSITIONS)
    few = TakePositions(name="hidden_states_at_positions")(states, positions)
    outputs = model.output | {"logits": _lm_head(model)(few)}
    return keras.Model(model.input | {POSITIONS: positions}, outputs, name=model.name)


def logits_at_positions(model):
    """Return a masked language model that computes logits at masked positions and nothing else.

    If the last block is an `EncoderBlock` with plain attention, it computes its queries and
    everything after them only at these positions (and at the first, for pair logits).

    Args:
        model: as in `predict_at_positions`.

    Returns:
        A functional `keras.Model` with the same weights and the extra input `masked_positions` (B,
        P), to `logits` (B, P, V) and, with "pretraining", `pair_logits` (B, 2).
    """
    pairs, last = model.head == "pretraining", _last_block(model)
    if last is None:
        predicting = predict_at_positions(model)
        names = ("logits", "pair_logits") if pairs else ("logits",)
        outputs = {name: predicting.output[name] for name in names}
        return keras.Model(predicting.input, outputs, name=model.name)
    block, states = last
    positions = keras.Input((None,), dtype="int32", name=POSITIONS)
    places, outputs = positions, {}
    if pairs:
        places = ops.concatenate([ops.zeros_like(positions[:, :1]), positions], axis=1)
    few = block(
        TakePositions(name="states_at_positions")(states, places),
        attention_mask=visible_tokens(model.input, places),
        value=states,
    )
    if pairs:
        first, few = few[:, 0], few[:, 1:]
        vector, pair_logits = model.get_layer("pooler").input, model.output["pair_logits"]
        outputs["pair_logits"] = keras.Model(vector, pair_logits, name="pair_head")(first)
    outputs["logits"] = _lm_head(model)(few)
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
    return block, keras.tree.flatten(model.get_layer(before).output)[0]


def _lm_head(model):
    """Return the part of a model from hidden states (B, P, D) to logits (B, P, V)."""
    states = model.get_layer("lm_transform").input
    return keras.Model(states, model.output["logits"], name="lm_head")
