"""Config of the encoder-decoder transformer (Vaswani et al. 2017) and of Marian."""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import TextConfig
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import setting


@dataclasses.dataclass(frozen=True)
class TransformerConfig(TextConfig):
    """The sizes and rates of an encoder-decoder transformer; defaults are the paper's base model.

    Sinusoids are all sines, then all cosines, as in the authors' code and in Marian, which is the
    paper's but for the order of columns.

    Args:
        vocabulary_size: V, of the encoder, and of the decoder where they share their table.
        num_layers, num_heads, intermediate_dim: of the encoder.
        num_decoder_layers, num_decoder_heads, decoder_intermediate_dim: of the decoder; those of
            the encoder if None.
        activation_dropout: applied in the feed-forward networks in training.
        norm_first: pre-norm blocks, with one more norm after the last (Xiong et al. 2020); post-
            norm ones, the paper's, where false.
        scale_embeddings: whether the tokens' vectors are multiplied by sqrt(D) (section 3.4).
        share_embeddings: whether encoder and decoder have one table.
        target_vocabulary_size: V of the decoder, where the tables are two.
        tie_embeddings: whether the output is the decoder's table.
        output_bias: whether a number is added to each logit; not trained, as in Marian.
        initializer_range: standard deviation of fresh weights, truncated at 2; if None, as in
            the authors' code, D ** -0.5 of tables, and Glorot & Bengio's (2010) of kernels.
        start_token_id: the id that the decoder reads first; Marian's is the padding.
        end_token_id: the id that ends a text.

    Raises:
        InputError: for a vocabulary of the decoder's own beside one table, and heads that do not
            divide `hidden_dim`.
    """

    vocabulary_size: int = 37000
    num_layers: int = 6
    num_heads: int = 8
    hidden_dim: int = 512
    intermediate_dim: int = 2048
    activation: str = "relu"
    attention_dropout: float = 0.0
    num_segments: int = 0
    layer_norm_epsilon: float = 1e-5
    initializer_range: float | None = None
    num_decoder_layers: int | None = setting(
        None, "Layers of the decoder; those of the encoder if not given.", low=1
    )
    num_decoder_heads: int | None = None
    decoder_intermediate_dim: int | None = None
    activation_dropout: float = 0.0
    norm_first: bool = setting(
        False, "Normalise before each sub-layer, not after it as in the paper."
    )
    scale_embeddings: bool = True
    share_embeddings: bool = True
    target_vocabulary_size: int | None = None
    output_bias: bool = False
    start_token_id: int = 0
    end_token_id: int = 1

    language_model: ClassVar[str] = "sequence_to_sequence"

    def __post_init__(self):
        super().__post_init__()
        if self.num_decoder_heads:
            self.check_divides("num_decoder_heads", "hidden_dim")
        other = self.target_vocabulary_size not in (None, self.vocabulary_size)
        if other and self.share_embeddings:
            raise InputError(
                f"target_vocabulary_size={self.target_vocabulary_size} needs "
                f"share_embeddings=False, as the table has vocabulary_size={self.vocabulary_size}."
            )

    @property
    def model_type(self):
        """Name of the family in config.json: a Pegasus is a Marian whose norms come first."""
        return "pegasus" if self.norm_first else "marian"

    @property
    def decoder(self):
        """Sizes of the decoder's blocks and vocabulary, as fields of the same names."""
        return _Decoder(
            self.target_vocabulary_size or self.vocabulary_size,
            self.num_decoder_layers or self.num_layers,
            self.num_decoder_heads or self.num_heads,
            self.decoder_intermediate_dim or self.intermediate_dim,
        )


@dataclasses.dataclass(frozen=True)
class _Decoder:
    vocabulary_size: int
    num_layers: int
    num_heads: int
    intermediate_dim: int
