"""Scaled dot-product attention: as the paper states it, with fewer passes, and in blocks."""

import dataclasses
import itertools

from keras import ops

from tfnlp.functional.attention_tiles import TermTables, TilePlan
from tfnlp.functional.masks import additive_mask, zero_masked_rows
from tfnlp.functional.products import fold_column, plain_product, product_minus, times_transposed
from tfnlp.functional.relative_scores import RelativeTerm
from tfnlp.functional.segment_scores import SegmentTerm


@dataclasses.dataclass(frozen=True)
class Scores:
    """Scores `query . key + terms`, not computed yet: by `compute`, or a tile at a time.

    Args:
        query: (B, N, T, H), scaled already.
        key: (B, N, S, H).
        terms: further terms, a `RelativeTerm` or a `SegmentTerm` each; `+` adds one.
        has_content: whether `query . key` counts; without it there must be a term.
    """

    query: object
    key: object
    terms: tuple = ()
    has_content: bool = True

    def __add__(self, term):
        return dataclasses.replace(self, terms=(*self.terms, term))

    def compute(self, product=plain_product):
        """Compute the scores, (B, N, T, S)."""
        scores = 0.0
        if self.has_content:
            scores = product("scores", times_transposed, query=self.query, key=self.key)
        if self.terms:
            lengths = ops.shape(self.query)[2], ops.shape(self.key)[2]
        for term in self.terms:
            scores += term.compute(*lengths, product)
        return scores


def attention(scores, value, mask=None, dropout=None, product=plain_product, name="context"):
    """Compute softmax(scores) . value (Vaswani et al. 2017, eq. 1).

    Args:
        scores: (B, N, T, S), before mask and softmax; all without N for one head.
        value: (B, N, S, H), or (B, 1, S, H) for all heads; the scores may be (1, N, T, S).
        mask: boolean, broadcasts to (B, T, S) or has 4 axes, or None.
        dropout: a `keras.layers.Dropout` for the attention weights, which drops; or None.
        product: a layer's product of weights and values.
        name: of the result for `product`.

    Returns:
        (B, N, T, H), zeros where a query may see nothing.
    """
    weights = zero_masked_rows(masked_softmax(scores, mask), mask)
    if dropout is None:
        return product(name, weights=weights, value=value)

    def dropped_product(weights, value):
        return ops.matmul(dropout(weights, training=True), value)

    return product(name, dropped_product, weights=weights, value=value)


def fused_attention(scores, value, mask=None, dropout=None, product=plain_product, name="context"):
    """Compute `attention` with fewer passes over the scores, forward and backward.

    Rows without keys are set to zero in the context, which is smaller than the weights, and the
    gradient of the softmax is one pass.
    """
    if product is not plain_product:
        # Zeros before the product: the next product rounds this one's result as it is.
        return attention(scores, value, mask, dropout, product=product, name=name)
    # The gradient below is of scores and values that have the same texts and heads.
    if dropout is not None or tuple(value.shape[:-2]) != tuple(scores.shape[:-2]):
        weights = masked_softmax(scores, mask)
        weights = weights if dropout is None else dropout(weights, training=True)
        return zero_masked_rows(ops.matmul(weights, value), mask)

    @ops.custom_gradient
    def attend(scores, value):
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
            by_weights = product_minus(*fold_column(upstream, value, mean))
            by_scores = ops.cast(weights, "float32") * by_weights
            by_value = ops.matmul(ops.swapaxes(weights, -1, -2), upstream)
            return ops.cast(by_scores, scores.dtype), by_value

        return context, gradient

    return zero_masked_rows(attend(scores, value), mask)


def blockwise_attention(scores, value, mask=None, dropout=None, *, block_size, training=False):
    """Compute `attention` of `Scores` without holding the (T, S) scores.

    Rabe & Staats 2021, 'Self-attention Does Not Need O(n^2) Memory', section 2: a running
    maximum, sum and weighted sum over blocks of keys, for each block of queries. The gradient
    computes each block's scores anew: with o the output and p the weights,
    ds = p * (dp - sum(do * o)).

    Args:
        scores: `Scores`, at most one of whose terms is a `SegmentTerm`.
        value, mask, dropout: as `attention` takes them.
        block_size: queries and keys in a block, made a multiple of 4.
        training: look, at run time, for tiles all of whose offsets share a row of a table, which
            then cost little. Not in exports: TensorFlow cannot freeze two models with conditions
            in nested loops in one process, as it gives parts of both the same names.

    Returns:
        (B, N, T, H), zeros where a query may see nothing.
    """
    query = scores.query if scores.has_content else ops.zeros_like(scores.query)
    key = scores.key
    segments = [term for term in scores.terms if isinstance(term, SegmentTerm)]
    plan = TilePlan(
        block_size,
        lengths=(ops.shape(query)[2], ops.shape(key)[2]),
        terms=[term for term in scores.terms if isinstance(term, RelativeTerm)],
        find_far=training,
        dropout=0.0 if dropout is None else dropout.rate,
        seed=None if dropout is None else dropout.seed_generator.next(),
    )
    plan.set_masks(mask, segments[0].is_same if segments else None)

    @ops.custom_gradient
    def attend(query, key, value, *tensors):
        tables = TermTables.of(tensors, len(plan.terms))
        output, log_sum = plan.forward(query, key, value, tables)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            inputs = query, key, value
            *by_inputs, by_tables = plan.backward(upstream, output, log_sum, inputs, tables)
            return *by_inputs, *itertools.chain(*by_tables)

        return output, gradient

    tables = itertools.chain(*plan.tables(segments))
    blocks = plan.split(query), plan.split(key, True), plan.split(value, True)
    return zero_masked_rows(plan.join(attend(*blocks, *tables)), mask)


def masked_softmax(scores, mask=None):
    """Compute softmax over the last axis in float32, with zeros where `mask` is false.

    Args:
        scores: (B, N, T, S) or (B, T, S), any float type.
        mask: boolean, broadcasts to (B, T, S) or has 4 axes, as `combine_masks` gives it, or None.

    Returns:
        (B, N, T, S) in the type of `scores`. A row that is masked throughout is uniform
        here; `zero_masked_rows` clears its context.
    """
    if scores.shape[-1] == 1:  # ones; Keras warns of a softmax over one entry
        return ops.exp(scores - scores)
    x = ops.cast(scores, "float32")
    if mask is not None:
        x = x + additive_mask(mask, len(scores.shape))
    return ops.cast(ops.softmax(x, axis=-1), scores.dtype)
