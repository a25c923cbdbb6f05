"""Models that pool token vectors: convolutional networks, bags and static vectors."""

import keras
from keras import ops

from tfnlp.configs.word_model_config import HASH_FACTOR
from tfnlp.layers import TextEmbedding
from tfnlp.models.shared_parts import token_embedding


def encode_textcnn(config, inputs, options):
    """Compute the largest value of each filter over a text (Kim 2014, section 2).

    c_i = relu(w x_(i:i+h-1) + b) and max_i c_i (eq. 2 and 3), with a text between h - 1 zeros on
    either side as in the author's code. A window without a real token counts for nothing, so that
    padding changes no result. Of two channels the sum is read: each filter is applied to both and
    the results are added.

    Args:
        config: a `TextCnnConfig`.
        inputs: `token_ids`, `segment_ids` and `padding_mask`, each (B, L).
        options: a `BuildOptions`.

    Returns:
        The token vectors, a list of one (B, L, D), and `pooled_output` (B, widths * filters).
    """
    embeddings = token_embedding(config)
    embeddings.trainable = config.channels != "static"
    x = embeddings(inputs["token_ids"])  # (B, L, D)
    if config.channels == "multichannel":
        static = token_embedding(config, "static_embeddings")
        static.trainable = False
        x = x + static(inputs["token_ids"])
    mask = ops.cast(inputs["padding_mask"], x.dtype)[..., None]  # (B, L, 1)
    x = x * mask
    largest = []
    for width in config.filter_widths:
        edges = ((0, 0), (width - 1, width - 1), (0, 0))
        convolution = keras.layers.Conv1D(
            config.num_filters, width, activation="relu", name=f"convolution_{width}"
        )
        maps = convolution(ops.pad(x, edges))  # (B, L + h - 1, filters)
        seen = ops.max_pool(ops.pad(mask, edges), width, 1)  # (B, L + h - 1, 1)
        # After the ReLU no value is below 0.
        largest.append(ops.max(maps * seen, axis=1))
    return [x], {"pooled_output": ops.concatenate(largest, axis=-1)}


def encode_bag(config, inputs, options):
    """Compute the mean of the vectors of a text's tokens and n-grams (Joulin et al. 2017).

    The vector of an n-gram is that of its hash, as in fastText.

    Args:
        config: a `BagConfig`.
        inputs: `token_ids`, `segment_ids` and `padding_mask`, each (B, L).
        options: a `BuildOptions`.

    Returns:
        The token vectors, a list of one (B, L, D), and `pooled_output` (B, D).
    """
    ids, real = inputs["token_ids"], inputs["padding_mask"]
    x = token_embedding(config)(ids)  # (B, L, D)
    mask = ops.cast(real, x.dtype)[..., None]  # (B, L, 1)
    total, count = ops.sum(x * mask, axis=1), ops.sum(mask, axis=1)
    if config.word_ngrams > 1:
        table = token_embedding(config, "ngram_embeddings", config.buckets)
    hashes = ids
    for _ in range(config.word_ngrams - 1):
        ids, real = _next(ids), _next(real)
        hashes = ops.mod(hashes * HASH_FACTOR + ids, config.buckets)
        mask = mask * ops.cast(real, x.dtype)[..., None]
        total = total + ops.sum(table(hashes) * mask, axis=1)
        count = count + ops.sum(mask, axis=1)
    return [x], {"pooled_output": total / ops.maximum(count, 1)}


def encode_static(config, inputs, options):
    """Compute the vector of each token times its weight, of which a text has the mean.

    Arora et al. 2017, algorithm 1, line 2. The weights do not train; those of tokens that say
    nothing, such as [CLS], are 0.

    Args:
        config: a `StaticConfig`.
        inputs: `token_ids`, `segment_ids` and `padding_mask`, each (B, L).
        options: a `BuildOptions`.

    Returns:
        The weighted vectors, a list of one (B, L, D), and no further outputs.
    """
    ids = inputs["token_ids"]
    x = token_embedding(config)(ids)  # (B, L, D)
    if not config.weighted:
        return [x], {}
    weights = TextEmbedding(
        config.vocabulary_size,
        1,
        num_segments=0,
        use_norm=False,
        embeddings_initializer="ones",
        trainable=False,
        name="token_weights",
    )
    return [x * weights(ids)], {}


def _next(values):
    """Return for each place (B, L) the value of the next one, and 0 for the last."""
    return ops.pad(values, ((0, 0), (0, 1)))[:, 1:]
