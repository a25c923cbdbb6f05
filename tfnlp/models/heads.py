"""Heads for classification, tagging, question answering, multiple choice and language models."""

import keras
from keras import ops

from tfnlp.configs import TEXT_CLASS_HEADS
from tfnlp.functional.activations import get_activation
from tfnlp.layers import AdaptiveSoftmax, LastState, LayerNormalization, MeanPooling, OutputBias
from tfnlp.layers.core.dense import Dense
from tfnlp.models.shared_parts import head_initializer


def pool(config, x, padding_mask, head):
    """Pool states (B, L, D) into one vector per text, (B, D), by the family's `pooling`."""
    pooling = config.pooling
    if pooling.token == "first":
        x = x[:, 0]
    elif pooling.token == "mean":
        x = MeanPooling(name="mean_state")(x, padding_mask)
    elif pooling.token == "last":
        x = LastState(name="last_state")(x, padding_mask)
    else:
        forward, backward = ops.split(x, 2, axis=-1)
        last = LastState(name="last_state")(forward, padding_mask)
        x = ops.concatenate([last, backward[:, 0]], axis=-1)
    if pooling.activation is None:
        return predict(config, x)
    if pooling.dropout_before and head in TEXT_CLASS_HEADS:
        x = keras.layers.Dropout(config.head_dropout, name="pooler_dropout")(x)
    pooler = Dense(
        config.hidden_dim,
        activation=get_activation(pooling.activation),
        kernel_initializer=head_initializer(config),
        name="pooler",
    )
    return pooler(x)


def predict(config, x):
    """Return the dense layer, activation and norm of states (..., D) that a head begins with.

    These are the states themselves in families without a prediction head.
    """
    if not config.prediction_head:
        return x
    return norm(
        config, transform(config, x, "prediction", config.lm_activation), "prediction_norm"
    )


def norm(config, x, name):
    """Return the layer norm of a head."""
    options = {"epsilon": config.layer_norm_epsilon, "center": config.biases}
    return LayerNormalization(**options, name=name)(x)


def transform(config, x, name, activation, units=None):
    """Compute the dense layer with an activation before the logits of tokens, (B, L, D).

    Its width is that of the model where `units` is None.
    """
    dense = keras.layers.Dense(
        units or config.hidden_dim,
        activation=get_activation(activation),
        kernel_initializer=head_initializer(config),
        use_bias=config.biases,
        name=name,
    )
    return dense(x)


def classify(config, pooled, num_classes, dropout):
    """Compute the logits of each text, (B, C) float32, from its vector (B, D).

    Devlin et al. 2019, section 4.1: dropout, then one dense layer. Where the family's `pooling` is
    bare (GPT, Transformer-XL), there is no bias, as in `transformers`: a regression then cannot
    begin at the mean of the labels. Of a family with a `max_norm` the weights of each class are
    rescaled after each step to at most that norm, as in the code of Kim 2014.
    """
    if config.pooling.bare:
        return _dense(config, num_classes, "classifier", use_bias=False)(pooled)
    x = keras.layers.Dropout(dropout, name="classifier_dropout")(pooled)
    constraint = config.max_norm and keras.constraints.MaxNorm(config.max_norm, axis=0)
    return _dense(config, num_classes, "classifier", kernel_constraint=constraint)(x)


def classify_vector(config, vector, num_classes):
    """Compute the logits, (B, C) float32, of the vectors of texts (B, D), by one dense layer."""
    return _dense(config, num_classes, "classifier")(vector)


def tag(config, x, num_classes):
    """Compute the logits of each token, (B, L, C) float32 (Devlin et al. 2019, section 5.3)."""
    x = predict(config, x)
    x = keras.layers.Dropout(config.tagger_dropout, name="classifier_dropout")(x)
    return _dense(config, num_classes, "classifier")(x)


def answer(config, x):
    """Compute the logits of an answer's first and last token, each (B, L) float32.

    Devlin et al. 2019, section 4.2: a product with a start and an end vector.
    """
    x = predict(config, x)
    x = keras.layers.Dropout(config.answerer_dropout, name="span_dropout")(x)
    logits = _dense(config, 2, "span")(x)  # (B, L, 2)
    return logits[..., 0], logits[..., 1]


def masked_lm(config, embeddings, x):
    """Compute the masked LM logits of each position, (B, L, V) (Devlin et al. 2019, task 1)."""
    x = transform(config, x, "lm_transform", config.lm_activation, embeddings.embedding_dim)
    return lm(config, embeddings, norm(config, x, "lm_norm"))


def compare_texts(config, pooled):
    """Compute the pair classifier's logits, (B, 2) float32, from a vector (B, D).

    Devlin et al. 2019, task 2; Lan et al. 2020, section 3.1.
    """
    x = keras.layers.Dropout(config.pair_dropout, name="pair_dropout")(pooled)
    return _dense(config, 2, "pair_classifier")(x)


def lm(config, embeddings, x, use_bias=True, initializer=None):
    """Compute each position's token logits, (B, L, V), by a product with the token table.

    Without `tie_embeddings` the output has its own table, drawn by `initializer` or, if None, as
    other heads.
    """
    if config.tie_embeddings:
        logits = embeddings(x, reverse=True)
    else:
        output = keras.layers.Dense(
            embeddings.vocabulary_size,
            use_bias=False,
            kernel_initializer=initializer or head_initializer(config),
            name="lm_output",
        )
        logits = output(x)
    return OutputBias(name="lm_bias")(logits) if use_bias else logits


def adaptive_lm(config, embeddings, x):
    """Compute each position's token log-probabilities, (B, L, V), by adaptive softmax."""
    _, *weights = embeddings.output
    clusters = len(config.cutoffs) + 1
    tables, projections = weights[:clusters], weights[clusters:]
    softmax = AdaptiveSoftmax(
        config.vocabulary_size,
        cutoffs=config.cutoffs,
        embedding_dim=config.embedding_dim,
        div_value=config.div_value,
        kernel_initializer=head_initializer(config),
        name="lm_softmax",
    )
    return softmax(
        x,
        tables if config.tie_embeddings else None,
        projections if config.tie_projections else None,
    )


def bidirectional_lm(config, x):
    """Compute the logits of each position's next word and of its previous one.

    Peters et al. 2018, section 3.1: both directions have one softmax.

    Args:
        config: an `ElmoConfig`.
        x: (B, L, D), forward states before backward ones.

    Returns:
        A dict of `forward_logits` and `backward_logits`, (B, L, V) float32 each.
    """
    output = _dense(config, config.output_words, "lm_output")
    forward, backward = ops.split(x, 2, axis=-1)
    return {"forward_logits": output(forward), "backward_logits": output(backward)}


def discriminate(config, x, positions=None):
    """Compute replaced-token logits, (B, L) float32 (Clark et al. 2020, section 2).

    With the config's `discriminator_norm` it is the head of DeBERTa v3's code release, which looks
    at the first token too: of each document where a row has several, by `positions` (B, L).
    """
    if config.discriminator_norm:
        first = x[:, :1]
        if positions is not None:
            starts = ops.cumsum(ops.ones_like(positions), axis=1) - 1 - positions
            first = ops.take_along_axis(x, starts[..., None], axis=1)
        x = norm(config, x + first, "discriminator_norm")
    x = transform(config, x, "discriminator_transform", config.activation)
    return _dense(config, 1, "discriminator")(x)[..., 0]


def _dense(config, units, name, **options):
    # Logits stay in float32 so that the loss is exact under mixed precision.
    return keras.layers.Dense(
        units,
        kernel_initializer=head_initializer(config),
        dtype="float32",
        name=name,
        **options,
    )
