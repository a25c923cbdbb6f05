"""BERT (Devlin et al. 2019) as a functional model."""

import dataclasses

import keras

from tfnlp.errors import InputError
from tfnlp.layers import EncoderBlock, TextEmbedding


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """The sizes and rates of a BERT; defaults are those of BERT-base, uncased.

    Args:
        vocabulary_size: V, the number of tokens.
        num_layers: the number of encoder blocks.
        num_heads: N; must divide `hidden_dim`.
        hidden_dim: D, the model width.
        intermediate_dim: F, the inner width of the feed-forward networks.
        activation: of the feed-forward networks; "gelu" is exact.
        dropout: applied to embeddings and sub-layer outputs in training.
        attention_dropout: applied to attention weights in training.
        max_length: the longest input there can be, in tokens.
        num_segments: the number of segments (2: first and second text).
        layer_norm_epsilon: added to variances.
        initializer_range: standard deviation of fresh weights, truncated at 2.
        pad_token_id: the id that pads a batch.
    """

    vocabulary_size: int = 30522
    num_layers: int = 12
    num_heads: int = 12
    hidden_dim: int = 768
    intermediate_dim: int = 3072
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    max_length: int = 512
    num_segments: int = 2
    layer_norm_epsilon: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int = 0

    def __post_init__(self):
        if self.hidden_dim % self.num_heads:
            raise InputError(
                f"num_heads={self.num_heads} does not divide hidden_dim={self.hidden_dim}."
            )


def bert(config, hidden_states=False, attention_scores=False, dtype=None, name="bert"):
    """Builds a BERT encoder.

    Args:
        config: a `BertConfig`.
        hidden_states: also output the embeddings and every block's output.
        attention_scores: also output every block's scores before the softmax.
        dtype: a Keras dtype policy, such as "mixed_bfloat16"; the global one where None.
        name: of the model.

    Returns:
        A `keras.Model` from a dict of `token_ids`, `segment_ids` and `padding_mask`, each
        (B, L) int32 (the mask 1 at real tokens), to a dict of `sequence_output` (B, L, D),
        `pooled_output` (B, D), and on request `hidden_states`, a list of num_layers + 1
        tensors (B, L, D), and `attention_scores`, a list of num_layers tensors (B, N, L, L).
    """
    # Layers
    embeddings = TextEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        config.max_length,
        num_segments=config.num_segments,
        dropout=config.dropout,
        layer_norm_epsilon=config.layer_norm_epsilon,
        embeddings_initializer=_initializer(config),
        dtype=dtype,
        name="embeddings",
    )
    blocks = [
        EncoderBlock(
            config.num_heads,
            config.intermediate_dim,
            activation=config.activation,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            layer_norm_epsilon=config.layer_norm_epsilon,
            kernel_initializer=_initializer(config),
            dtype=dtype,
            name=f"encoder_{i}",
        )
        for i in range(config.num_layers)
    ]
    pooler = keras.layers.Dense(
        config.hidden_dim,
        activation="tanh",
        kernel_initializer=_initializer(config),
        dtype=dtype,
        name="pooler",
    )

    # Forward pass
    inputs = {
        key: keras.Input((None,), dtype="int32", name=key)
        for key in ("token_ids", "segment_ids", "padding_mask")
    }
    attention_mask = inputs["padding_mask"][:, None, :]  # (B, 1, L)
    x = embeddings(inputs["token_ids"], inputs["segment_ids"])  # (B, L, D)
    states, scores = [x], []
    for block in blocks:
        x, block_scores = block(
            x, attention_mask=attention_mask, return_attention_scores=True
        )  # (B, L, D), (B, N, L, L)
        states.append(x)
        scores.append(block_scores)
    outputs = {"sequence_output": x, "pooled_output": pooler(x[:, 0])}
    if hidden_states:
        outputs["hidden_states"] = states
    if attention_scores:
        outputs["attention_scores"] = scores
    return keras.Model(inputs, outputs, name=name)


def bert_classifier(
    config, num_classes, hidden_states=False, attention_scores=False, dtype=None, name="bert"
):
    """Builds a BERT with a classification head on its pooled output.

    Devlin et al. 2019, section 4.1: dropout, then one dense layer.

    Returns:
        A `keras.Model` as `bert` gives it, with `logits` (B, num_classes) float32 as the
        first of its outputs.
    """
    encoder = bert(config, hidden_states, attention_scores, dtype)
    x = keras.layers.Dropout(config.dropout, dtype=dtype, name="classifier_dropout")(
        encoder.output["pooled_output"]
    )
    # Logits stay in float32 so that the loss is exact under mixed precision.
    logits = keras.layers.Dense(
        num_classes,
        kernel_initializer=_initializer(config),
        dtype="float32",
        name="classifier",
    )(x)
    return keras.Model(encoder.input, {"logits": logits, **encoder.output}, name=name)


def config_of(model):
    """The `BertConfig` of a model that `bert` or `bert_classifier` built, from its layers."""
    embeddings = model.get_layer("embeddings")
    blocks = [layer for layer in model.layers if isinstance(layer, EncoderBlock)]
    return BertConfig(
        vocabulary_size=embeddings.vocabulary_size,
        num_layers=len(blocks),
        num_heads=blocks[0].num_heads,
        hidden_dim=embeddings.hidden_dim,
        intermediate_dim=blocks[0].intermediate_dim,
        activation=blocks[0].activation,
        dropout=embeddings.dropout,
        attention_dropout=blocks[0].attention_dropout,
        max_length=embeddings.max_length,
        num_segments=embeddings.num_segments,
        layer_norm_epsilon=embeddings.layer_norm_epsilon,
        initializer_range=embeddings.embeddings_initializer.stddev,
    )


def _initializer(config):
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)
