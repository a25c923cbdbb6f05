"""Recurrent networks: simple RNN, LSTM and GRU, as language models, classifiers and taggers.

Elman 1990; Hochreiter & Schmidhuber 1997; Cho et al. 2014. The layers are Keras' own, one above
the other, with dropout between them (Zaremba et al. 2014).
"""

import dataclasses
from typing import ClassVar

import keras
from keras import ops

from tfnlp.layers import TextEmbedding
from tfnlp.layers.blocks.recurrent_decoder import CELLS as RECURRENT_CELLS
from tfnlp.models.base_config import BaseConfig, Pooling
from tfnlp.utils.errors import InputError

# The layer of each cell, and the number of states that it goes on from.
LAYERS = {"rnn": keras.layers.SimpleRNN, "lstm": keras.layers.LSTM, "gru": keras.layers.GRU}
STATES = {name: count for name, (_, count) in RECURRENT_CELLS.items()}
CELLS = tuple(LAYERS)


@keras.saving.register_keras_serializable("tfnlp")
@dataclasses.dataclass(frozen=True)
class RecurrentConfig(BaseConfig):
    """The sizes and rates of a recurrent network, for language models, classifiers and taggers.

    Args:
        vocabulary_size: V, the number of tokens.
        cell: "rnn", "lstm" or "gru".
        num_layers: the number of layers.
        hidden_dim: D, the width of the states; of two directions each has half.
        dropout: applied to embeddings and to each layer's output in training, not from one
            position to the next.
        classifier_dropout: applied before a head's last layer too; none if None.
        bidirectional: whether each layer reads the text from both ends; no language model does.
        initializer_range: standard deviation of fresh embeddings and heads; cells start as Keras'
            do.
        pad_token_id: the id that pads a batch.
        tie_embeddings: whether a language model's output is the token table; else it has a
            table of its own.
        output_bias: whether a language model adds a bias to each token's logit. It begins at the
            log of the token's share of the training text (`CausalLM.start`).

    Raises:
        InputError: for an unknown cell, and an odd `hidden_dim` of two directions.
    """

    vocabulary_size: int = 30522
    cell: str = "lstm"
    num_layers: int = 2
    hidden_dim: int = 256
    dropout: float = 0.1
    classifier_dropout: float | None = None
    bidirectional: bool = False
    initializer_range: float = 0.05
    pad_token_id: int = 0
    tie_embeddings: bool = True
    output_bias: bool = True

    max_length: ClassVar[None] = None
    recurrent: ClassVar[bool] = True

    def __post_init__(self):
        check_recurrent(self)

    @property
    def pooling(self):
        """Pooling by the final state of each direction."""
        return Pooling("ends" if self.bidirectional else "last", None)

    @property
    def language_model(self):
        """Head that predicts tokens; None for two directions, which see later tokens."""
        return None if self.bidirectional else "causal_lm"

    @property
    def has_memory(self):
        """Support for starting a segment from the previous one's states: one direction only."""
        return not self.bidirectional

    @property
    def memory_length(self):
        """Number of states per layer, which are its memory: 2 for an LSTM, h and c."""
        return STATES[self.cell]

    @property
    def head_dropout(self):
        """Dropout before a head's last layer, in addition to that of the states."""
        return self.classifier_dropout or 0.0

    @property
    def directions(self):
        """Reading directions of each layer."""
        return ("forward", "backward") if self.bidirectional else ("forward",)


def check_recurrent(config):
    """Raise an InputError for an unknown cell, or an odd width with two directions."""
    if config.cell not in CELLS:
        raise InputError(f"cell={config.cell!r} is unknown; use one of {', '.join(CELLS)}.")
    if config.bidirectional and config.hidden_dim % 2:
        raise InputError(
            f"hidden_dim={config.hidden_dim} must be even with bidirectional=True: each direction "
            "has half of it."
        )


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
    embed = TextEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        num_segments=0,
        dropout=config.dropout,
        use_norm=False,
        embeddings_initializer=config.initializer,
        dtype=options.dtype,
        name="embeddings",
    )
    x, mask = embed(inputs["token_ids"]), ops.cast(inputs["padding_mask"], "bool")
    memory = inputs.get("memory")
    if memory is not None:
        count = config.memory_length
        # Zeros where there is none yet.
        memory = ops.pad(memory, ((0, 0), (0, 0), (count, 0), (0, 0)))[:, :, -count:]
    states, last = read_layers(config, x, mask, options.dtype, memory)
    if memory is None:
        return states, {}
    return states, {}, ops.cast(last, "float32")


def read_layers(config, x, mask, dtype=None, initial=None, prefix=""):
    """Run x through stacked recurrent layers, each followed by dropout.

    Args:
        config: has `cell`, `num_layers`, `hidden_dim`, `dropout` and `directions`: one, or both.
        x: (B, L, E).
        mask: (B, L) boolean, true at real tokens; at others states stay as they are.
        dtype: of the layers.
        initial: (B, layers, S, D), what each layer's S states begin with, of one direction; zeros
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
                dtype=dtype,
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
        x = keras.layers.Dropout(config.dropout, dtype=dtype, name=f"{prefix}dropout_{i}")(x)
        states.append(x)
        last.append(ends[0] if len(ends) == 1 else ops.concatenate(ends, axis=-1))
    return states, ops.stack(last, axis=1)
