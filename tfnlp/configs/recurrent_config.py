"""Config of the recurrent networks: simple RNN, LSTM and GRU.

Elman 1990; Hochreiter & Schmidhuber 1997; Cho et al. 2014.
"""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import BaseConfig, Pooling
from tfnlp.utils.errors import InputError

# The number of states of each cell: an LSTM has h and c.
STATES = {"rnn": 1, "lstm": 2, "gru": 1}
CELLS = tuple(STATES)


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
