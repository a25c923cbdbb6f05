"""The encoder-decoder transformer (Vaswani et al. 2017), and Marian's setting of it."""

import dataclasses
import math
from typing import ClassVar

import keras
from keras import ops

from tfnlp.layers import (
    DecoderBlock,
    FastTruncatedNormal,
    LayerNormalization,
    OutputBias,
    SinusoidalPositionEncoding,
    TextEmbedding,
)
from tfnlp.models import heads
from tfnlp.models.base_config import TextConfig
from tfnlp.models.shared_parts import encoder_blocks, run_blocks
from tfnlp.utils.errors import InputError


@keras.saving.register_keras_serializable("tfnlp")
@dataclasses.dataclass(frozen=True)
class TransformerConfig(TextConfig):
    """The sizes and rates of an encoder-decoder transformer; defaults are the paper's base model.

    Sinusoids are all sines, then all cosines, as in the authors' code and in Marian, which is the
    paper's but for the order of columns.

    Args:
        vocabulary_size: V, of the encoder, and of the decoder where they share their table.
        num_layers: the number of the encoder's blocks.
        num_heads, intermediate_dim: of the encoder.
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
        start_token_id: what the decoder begins with; Marian's is the padding.
        end_token_id: what ends a text.

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
    num_decoder_layers: int | None = None
    num_decoder_heads: int | None = None
    decoder_intermediate_dim: int | None = None
    activation_dropout: float = 0.0
    norm_first: bool = False
    scale_embeddings: bool = True
    share_embeddings: bool = True
    target_vocabulary_size: int | None = None
    output_bias: bool = False
    start_token_id: int = 0
    end_token_id: int = 1

    language_model: ClassVar[str] = "sequence_to_sequence"

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_dim % self.decoder.num_heads:
            raise InputError(
                f"num_decoder_heads={self.num_decoder_heads} does not divide "
                f"hidden_dim={self.hidden_dim}."
            )
        other = self.target_vocabulary_size not in (None, self.vocabulary_size)
        if other and self.share_embeddings:
            raise InputError(
                f"target_vocabulary_size={self.target_vocabulary_size} needs "
                f"share_embeddings=False, as the table has vocabulary_size={self.vocabulary_size}."
            )

    @property
    def decoder(self):
        """Sizes of the decoder's blocks and vocabulary, as fields of the same names."""
        return _Decoder(
            self.target_vocabulary_size or self.vocabulary_size,
            self.num_decoder_layers or self.num_layers,
            self.num_decoder_heads or self.num_heads,
            self.decoder_intermediate_dim or self.intermediate_dim,
        )

    @property
    def initializer(self):
        """New initializer for fresh kernels."""
        if self.initializer_range is None:
            return keras.initializers.GlorotUniform()
        return super().initializer

    @property
    def table_initializer(self):
        """New initializer for fresh tables."""
        return FastTruncatedNormal(stddev=self.initializer_range or self.hidden_dim**-0.5)

    @property
    def head_initializer(self):
        """New initializer for an untied output."""
        return self.table_initializer


@dataclasses.dataclass(frozen=True)
class _Decoder:
    vocabulary_size: int
    num_layers: int
    num_heads: int
    intermediate_dim: int


def run_transformer(config, inputs, options, head):
    """Run a transformer encoder-decoder on sources and targets.

    Args:
        config: a `TransformerConfig`.
        inputs: `encoder_token_ids` and `encoder_padding_mask`, (B, S), and `decoder_token_ids`,
            (B, T).
        options: a `BuildOptions`.
        head: "sequence_to_sequence", or None for no logits.

    Returns:
        The outputs, a dict, as `build_model` describes them; and the states of the decoder and of
        the encoder, lists of (B, T, D) and (B, S, D).
    """
    embed = _embedding(config, options, "embeddings", config.decoder.vocabulary_size)
    embed_source = embed
    if not config.share_embeddings:
        embed_source = _embedding(config, options, "encoder_embeddings", config.vocabulary_size)
    place = SinusoidalPositionEncoding(
        interleaved=False,
        scale=math.sqrt(config.hidden_dim) if config.scale_embeddings else 1.0,
        max_length=config.max_length,
        dtype=options.dtype,
        name="positions",
    )
    drop = keras.layers.Dropout(config.dropout, dtype=options.dtype, name="embedding_dropout")
    source_seen = inputs["encoder_padding_mask"][:, None, :]  # (B, 1, S)
    block_arguments = {
        "norm_first": config.norm_first,
        "feed_forward_dropout": config.activation_dropout,
    }
    source_states, source_further = run_blocks(
        encoder_blocks(config, options, **block_arguments),
        drop(place(embed_source(inputs["encoder_token_ids"]))),
        options,
        attention_mask=source_seen,
    )
    _norm_last(config, options, source_states, "encoder_norm")
    states, further = _run_decoder(
        decoder_blocks(config, options, **block_arguments),
        drop(place(embed(inputs["decoder_token_ids"]))),
        source_states[-1],
        source_seen,
        options,
    )
    _norm_last(config, options, states, "decoder_norm")
    outputs = {"sequence_output": states[-1], "encoder_output": source_states[-1]}
    if head is not None:
        outputs = {"logits": _logits(config, embed, states[-1], options.dtype)} | outputs
    outputs |= further | {f"encoder_{name}": found for name, found in source_further.items()}
    return outputs, states, source_states


def decoder_blocks(config, options, **kwargs):
    """Build the decoder blocks of a config."""
    sizes = config.decoder
    return [
        DecoderBlock(
            sizes.num_heads,
            sizes.intermediate_dim,
            activation=config.activation,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            kernel_initializer=config.initializer,
            block_size=options.block_size,
            dtype=options.dtype,
            name=f"decoder_{i}",
            **kwargs,
        )
        for i in range(sizes.num_layers)
    ]


def _run_decoder(blocks, x, source, source_seen, options):
    """Run the decoder as `run_blocks` does; names of cross-attention outputs begin "cross_"."""
    names = ["attention_scores", "cross_attention_scores"] * options.attention_scores
    if options.attention_projections:
        names += [f"{of}{what}" for of in ("", "cross_") for what in ("queries", "keys", "values")]
    states, further = [x], {name: [] for name in names}
    for block in blocks:
        x = block(x, source, encoder_mask=source_seen, **options.block_arguments)
        if further:
            x, *of_block = x
            for name, tensor in zip(further, of_block, strict=True):
                further[name].append(tensor)
        states.append(x)
    return states, further


def _embedding(config, options, name, vocabulary_size):
    return TextEmbedding(
        vocabulary_size,
        config.hidden_dim,
        num_segments=0,
        use_norm=False,
        embeddings_initializer=config.table_initializer,
        dtype=options.dtype,
        name=name,
    )


def _norm_last(config, options, states, name):
    """Normalise the last of pre-norm blocks' states, in place."""
    if config.norm_first:
        norm = LayerNormalization(
            epsilon=config.layer_norm_epsilon, dtype=options.dtype, name=name
        )
        states[-1] = norm(states[-1])


def _logits(config, embeddings, x, dtype):
    """Compute the logits of the next token, (B, T, V) float32."""
    target = dataclasses.replace(
        config,
        vocabulary_size=config.decoder.vocabulary_size,
        target_vocabulary_size=None,
    )
    logits = heads.lm(target, embeddings, x, dtype, use_bias=False)
    if config.output_bias:
        logits = OutputBias(trainable=False, dtype=dtype, name="lm_bias")(logits)
    # The loss is exact under mixed precision, too.
    return logits if logits.dtype == "float32" else ops.cast(logits, "float32")
