"""The mathematics of scaled dot-product attention, without weights."""

from keras import ops

from tfnlp.functional.masks import MASKED
from tfnlp.functional.shapes import reshape


def split_heads(x, num_heads):
    """Split (B, L, N * H) into (B, N, L, H)."""
    batch, length, width = ops.shape(x)
    x = reshape(x, (batch, length, num_heads, width // num_heads))
    return ops.transpose(x, (0, 2, 1, 3))


def join_heads(x):
    """Join (B, N, L, H) into (B, L, N * H)."""
    batch, heads, length, size = ops.shape(x)
    return reshape(ops.transpose(x, (0, 2, 1, 3)), (batch, length, heads * size))


def split_table(x, num_heads):
    """Split (R, N * H) into (N, R, H)."""
    x = ops.reshape(x, (-1, num_heads, x.shape[-1] // num_heads))
    return ops.transpose(x, (1, 0, 2))


def scaled(query, terms=1):
    """Divide the query by sqrt(terms * H): it is smaller than the scores, so cheaper to scale."""
    return query * ops.cast((terms * query.shape[-1]) ** -0.5, query.dtype)


def add_by_head(x, bias):
    """Add a bias (N, H) to (B, N, T, H); its gradient is summed over one axis at a time.

    TensorFlow takes three times as long to sum over two axes with another between them.
    """
    return x + ops.broadcast_to(bias[:, None], (ops.shape(x)[0], *bias[:, None].shape))


def masked_softmax(scores, mask=None):
    """Compute softmax over the last axis in float32, with zeros where `mask` is false.

    Args:
        scores: (B, N, T, S), any float type.
        mask: boolean, broadcasts to (B, T, S) or has 4 axes, as `combine_masks` gives it, or None.

    Returns:
        (B, N, T, S) in the type of `scores`. A row that is masked throughout is uniform
        here; `zero_masked_rows` clears what it attends to.
    """
    if scores.shape[-1] == 1:  # ones; Keras warns of a softmax over one entry
        return ops.exp(scores - scores)
    x = ops.cast(scores, "float32")
    if mask is not None:
        x = x + additive_mask(mask)
    return ops.cast(ops.softmax(x, axis=-1), scores.dtype)


def additive_mask(mask):
    """Return 0 where a mask is true, else MASKED, float32; (B, T, S) becomes (B, 1, T, S)."""
    added = ops.where(mask, 0.0, MASKED)
    return added if len(mask.shape) == 4 else added[:, None]


def zero_masked_rows(context, mask):
    """Set `context` (B, N, T, H) to zero for queries whose keys are all masked."""
    if mask is None:
        return context
    seen = ops.any(mask, axis=-1, keepdims=True)
    seen = seen if len(mask.shape) == 4 else ops.expand_dims(seen, 1)
    return context * ops.cast(seen, context.dtype)


def attend(
    scores,
    value,
    mask=None,
    dropout_layer=None,
    training=None,
    quantizer=None,
    product=ops.matmul,
):
    """Compute softmax(scores) . value (Vaswani et al. 2017, eq. 1).

    Args:
        scores: (B, N, T, S), before mask and softmax.
        value: (B, N, S, H), or (B, 1, S, H) for all heads; the scores may be (1, N, T, S).
        mask: boolean, broadcasts to (B, T, S) or has 4 axes, or None.
        dropout_layer: a `keras.layers.Dropout` for the attention weights, or None.
        training: whether dropout is on.
        quantizer: a `FakeQuantizer` for the attention weights, or None.
        product: what multiplies rounded weights and values.

    Returns:
        (B, N, T, H), zeros where a query may see nothing.
    """
    drops = dropout_layer is not None and dropout_layer.rate and training
    if quantizer is not None:
        # Zeros before the product: the next product rounds what comes out of this one as it is.
        weights = quantizer(zero_masked_rows(masked_softmax(scores, mask), mask))
        weights = dropout_layer(weights, training=True) if drops else weights
        return product(weights, value)
    # The gradient below is of scores and values that have the same texts and heads.
    if drops or tuple(value.shape[:2]) != tuple(scores.shape[:2]):
        weights = masked_softmax(scores, mask)
        weights = dropout_layer(weights, training=True) if drops else weights
        return zero_masked_rows(ops.matmul(weights, value), mask)

    @ops.custom_gradient
    def attention(scores, value):
        weights = masked_softmax(scores, mask)
        context = ops.matmul(weights, value)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            mean = ops.sum(
                ops.cast(upstream, "float32") * ops.cast(context, "float32"),
                axis=-1,
                keepdims=True,
            )
            # With the mean as a feature of the product, the softmax's gradient is one pass.
            by_weights = product_less(*less(upstream, value, mean))
            by_scores = ops.cast(weights, "float32") * by_weights
            by_value = ops.matmul(ops.swapaxes(weights, -1, -2), upstream)
            return ops.cast(by_scores, scores.dtype), by_value

        return context, gradient

    return zero_masked_rows(attention(scores, value), mask)


def less(a, b, column):
    """Return the arguments of `product_less`, the column folded into a and b if in float32.

    In float32 the column becomes a feature of `a`, at no cost, and None is returned for it. A
    subtraction would be another pass over the scores.

    Args:
        a: (B, N, T, H).
        b: (B, N, S, H).
        column: (B, N, T, 1) float32.
    """
    if a.dtype != "float32":
        return a, b, column
    a = ops.concatenate([a, -column], axis=-1)
    return a, ops.concatenate([b, ops.ones_like(b[..., :1])], axis=-1), None


def product_less(a, b, column):
    """Compute a . b^T, minus `column` if it is not None, (B, N, T, S) float32."""
    product = ops.cast(ops.matmul(a, ops.swapaxes(b, -1, -2)), "float32")
    return product if column is None else product - column
