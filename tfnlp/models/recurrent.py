"""Recurrent networks: simple RNN, LSTM and GRU, as language models, classifiers and taggers.

Elman 1990; Hochreiter & Schmidhuber 1997; Cho et al. 2014. The layers are Keras' own, one above
the other, with dropout between them (Zaremba et al. 2014).
"""

import keras
from keras import ops

from tfnlp.configs.recurrent_config import STATES
from tfnlp.models.shared_parts import token_embedding

# The layer of each cell.
LAYERS = {"rnn": keras.layers.SimpleRNN, "lstm": keras.layers.LSTM, "gru": keras.layers.GRU}


def encode_recurrent(config, inputs, options):
    """Run a recurrent network.

    Args:
        config: a `RecurrentConfig`.
        inputs: `token_ids`, `segment_ids` and `padding_mask`, each (B, L); padding, on either
            side, changes no state. With `memory` (B, layers, M, D), M the states of a layer or 0
            before the first segment, the states go on from it.
        options: a `BuildOptions`.

    Returns:
        The embeddings and every layer's output, a list of (B, L, D); {}; and with `memory` that
        of the next segment.
    """
    embed = token_embedding(config, dropout=config.dropout)
    x, mask = embed(inputs["token_ids"]), ops.cast(inputs["padding_mask"], "bool")
    memory = inputs.get("memory")
    if memory is not None:
        count = config.memory_length
        # Zeros where there is none yet.
        memory = ops.pad(memory, ((0, 0), (0, 0), (count, 0), (0, 0)))[:, :, -count:]
    states, last = read_layers(config, x, mask, memory)
    if memory is None:
        return states, {}
    return states, {}, ops.cast(last, "float32")


def read_layers(config, x, mask, initial=None, prefix=""):
    """Run x through stacked recurrent layers, each followed by dropout.

    Args:
        config: has `cell`, `num_layers`, `hidden_dim`, `dropout` and `directions`: one, or both.
        x: (B, L, E).
        mask: (B, L) boolean, true at real tokens; at others states stay as they are.
        initial: (B, layers, S, D), the initial S states of each layer, of one direction; zeros
            if None.
        prefix: of the layers' names.

    Returns:
        x and every layer's output, a list of (B, L, D); and the states (B, layers, S, D) after the
        last token, those of two directions side by side.
    """
    states, last = [x], []
    width = config.hidden_dim // len(config.directions)
    for i in range(config.num_layers):
        outputs, ends = [], []
        for direction in config.directions:
            layer = LAYERS[config.cell](
                width,
                return_sequences=True,
                return_state=True,
                go_backwards=direction == "backward",
                name=f"{prefix}{direction}_{i}",
            )
            begin = (
                None if initial is None else [initial[:, i, k] for k in range(STATES[config.cell])]
            )
            output, *end = layer(x, initial_state=begin, mask=mask)
            # Read backwards, the last token's output comes first.
            outputs.append(ops.flip(output, axis=1) if layer.go_backwards else output)
            ends.append(ops.stack(end, axis=1))
        x = outputs[0] if len(outputs) == 1 else ops.concatenate(outputs, axis=-1)
        x = keras.layers.Dropout(config.dropout, name=f"{prefix}dropout_{i}")(x)
        states.append(x)
        last.append(ends[0] if len(ends) == 1 else ops.concatenate(ends, axis=-1))
    return states, ops.stack(last, axis=1)
