"""Config of the recurrent encoder-decoders.

Sutskever et al. 2014, Bahdanau et al. 2015, Luong et al. 2015.
"""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import BaseConfig
from tfnlp.configs.recurrent_config import check_recurrent
from tfnlp.utils.errors import InputError

# The scores of `ScoreAttention`.
SCORES = ("dot", "general", "concat")


@dataclasses.dataclass(frozen=True)
class RecurrentTranslatorConfig(BaseConfig):
    """The sizes and rates of a recurrent encoder-decoder.

    Args:
        vocabulary_size: V, the number of tokens, of source and target alike.
        cell: "rnn", "lstm" or "gru".
        num_layers: the layers of the encoder, and of the decoder.
        hidden_dim: D, the width of the states; of two directions each has half.
        dropout: applied to embeddings and to each layer's output in training.
        attention: the score of the decoder's states with the encoder's: "dot", "general" or
            "concat" (`ScoreAttention`); None for no attention, where the encoder's last state
            alone reaches the decoder.
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
    cell: str = "lstm"
    num_layers: int = 2
    hidden_dim: int = 256
    dropout: float = 0.2
    attention: str | None = "general"
    input_feeding: bool = True
    bidirectional: bool = True
    reverse_source: bool = False
    share_embeddings: bool = True
    tie_embeddings: bool = True
    initializer_range: float = 0.05
    pad_token_id: int = 0
    start_token_id: int = 0
    end_token_id: int = 1

    max_length: ClassVar[None] = None
    classifier_dropout: ClassVar[None] = None
    recurrent: ClassVar[bool] = True
    language_model: ClassVar[str] = "sequence_to_sequence"

    def __post_init__(self):
        check_recurrent(self)
        if self.attention is not None and self.attention not in SCORES:
            raise InputError(
                f"attention={self.attention!r} is unknown; use one of {', '.join(SCORES)} or None."
            )
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
