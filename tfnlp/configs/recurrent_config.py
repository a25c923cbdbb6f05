"""Configs of the recurrent networks and of the recurrent encoder-decoders.

Simple RNN, LSTM and GRU: Elman 1990; Hochreiter & Schmidhuber 1997; Cho et al. 2014.
Encoder-decoders: Sutskever et al. 2014, Bahdanau et al. 2015, Luong et al. 2015.
"""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import BaseConfig, Pooling
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, setting

# The number of states of each cell: an LSTM has h and c.
STATES = {"rnn": 1, "lstm": 2, "gru": 1}
CELLS = tuple(STATES)
# The scores of `ScoreAttention`.
SCORES = ("dot", "general", "concat")


class RecurrentBase(Settings, BaseConfig):
    """Properties of recurrent configs."""

    max_length: ClassVar[None] = None
    recurrent: ClassVar[bool] = True
    attends: ClassVar[bool] = False

    def __post_init__(self):
        super().__post_init__()
        if self.bidirectional and self.hidden_dim % 2:
            raise InputError(
                f"hidden_dim={self.hidden_dim} must be even with bidirectional=True: each "
                "direction has half of it."
            )


@dataclasses.dataclass(frozen=True)
class RecurrentConfig(RecurrentBase):
    """The sizes and rates of a recurrent network, for language models, classifiers and taggers.

    Args:
        vocabulary_size: V, the number of tokens.
        cell, num_layers: as in the help of their fields.
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
    cell: str = setting("lstm", "Cell of the network.", choices=CELLS)
    num_layers: int = setting(2, "Layers of the network.", low=1)
    hidden_dim: int = setting(256, "Width of embeddings and states.", low=1)
    dropout: float = setting(
        0.1, "Dropout rate of embeddings and of each layer's output.", low=0, high=1
    )
    classifier_dropout: float | None = None
    bidirectional: bool = setting(
        False, "Read texts from both ends with a recurrent network.", rare=True
    )
    initializer_range: float = 0.05
    pad_token_id: int = 0
    tie_embeddings: bool = setting(
        True, "Share the weights of the output layer and the embeddings."
    )
    output_bias: bool = True

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


@dataclasses.dataclass(frozen=True)
class RecurrentTranslatorConfig(RecurrentBase):
    """The sizes and rates of a recurrent encoder-decoder.

    Args:
        vocabulary_size: V, the number of tokens, of source and target alike.
        cell, num_layers: as in the help of their fields.
        hidden_dim: D, the width of the states; of two directions each has half.
        dropout: applied to embeddings and to each layer's output in training.
        attention: the score of `ScoreAttention`; None for no attention.
        input_feeding: whether each target token is read beside the attentional output of the
            token before (Luong et al., section 3.3); without attention no effect.
        bidirectional: whether the encoder reads from both ends (Bahdanau et al., section 3.2); the
            decoder then begins with projections of the two last states.
        reverse_source: whether the encoder reads the source from its last token on (Sutskever et
            al., section 3.3); of an encoder of one direction.
        share_embeddings: whether source and target have one table of tokens.
        tie_embeddings: whether the output is the target's table of tokens; else it has a table of
            its own.
        initializer_range: standard deviation of fresh embeddings; cells start as Keras' do.
        pad_token_id: the id that pads a batch.
        start_token_id: the id that the decoder reads first.
        end_token_id: the id that ends a text.

    Raises:
        InputError: for an unknown cell or attention, an odd `hidden_dim` of two directions, and a
            reversed source of two directions.
    """

    vocabulary_size: int = 8000
    cell: str = setting("lstm", "Cell.", choices=CELLS)
    num_layers: int = setting(2, "Layers of the encoder, and of the decoder.", low=1)
    hidden_dim: int = setting(256, "Width.", low=1)
    dropout: float = setting(0.2, "Dropout rate.", low=0, high=1)
    attention: str | None = setting(
        "general",
        "Attention scores (Luong et al. 2015, eq. 8). none: the decoder only starts from the "
        "encoder's last state.",
        choices=SCORES,
    )
    input_feeding: bool = setting(True, "Feed the attention vector to the decoder.")
    bidirectional: bool = setting(True, "Read from both ends in the encoder.")
    reverse_source: bool = setting(
        False, "Read the source backwards in an encoder of one direction."
    )
    share_embeddings: bool = True
    tie_embeddings: bool = True
    initializer_range: float = 0.05
    pad_token_id: int = 0
    start_token_id: int = 0
    end_token_id: int = 1

    classifier_dropout: ClassVar[None] = None
    language_model: ClassVar[str] = "sequence_to_sequence"

    def __post_init__(self):
        super().__post_init__()
        if self.reverse_source and self.bidirectional:
            raise InputError(
                "reverse_source=True has no effect with bidirectional=True, which reads the "
                "source from both ends; leave one out."
            )

    @property
    def directions(self):
        """Reading directions of each encoder layer."""
        if self.bidirectional:
            return ("forward", "backward")
        return ("backward",) if self.reverse_source else ("forward",)
