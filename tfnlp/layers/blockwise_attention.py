"""Attention over long inputs, a block of keys at a time."""

import dataclasses

from keras import ops, random

from tfnlp.layers.dot_product_attention import additive_mask, zero_masked_rows
from tfnlp.layers.masks import MASKED
from tfnlp.layers.relative_scores import (
    Layout,
    relative_scores_forward,
    relative_scores_gradient,
)


def blockwise_attention(query, key, value, mask, block_size, terms=(), dropout=0.0, seed=None):
    """softmax(query . key + terms) . value without ever holding the (T, S) scores.

    Rabe & Staats 2021, 'Self-attention Does Not Need O(n^2) Memory', section 2: a running
    maximum, sum and weighted sum over blocks of keys. The gradient computes each block's
    scores anew: with o the output and p the weights, ds = p * (dp - sum(do * o)).

    Args:
        query: (B, N, T, H), scaled already.
        key: (B, N, S, H).
        value: (B, N, S, H').
        mask: boolean, broadcasts to (B, T, S), or None.
        block_size: keys in a block.
        terms: `RelativeTerm`s to add to the scores.
        dropout: share of attention weights dropped.
        seed: the seed of that dropout, as `keras.random.SeedGenerator.next` gives it.

    Returns:
        (B, N, T, H'), zeros where a query may see nothing.
    """
    length, source_length = ops.shape(query)[2], ops.shape(key)[2]
    blocks = -(-source_length // block_size)
    padding = blocks * block_size - source_length
    if not (isinstance(padding, int) and padding == 0):
        if mask is None:
            mask = ops.ones((1, 1, source_length), dtype="bool")
        key, value = _pad(key, padding), _pad(value, padding)
        terms = [_pad_term(term, padding) for term in terms]
    seen = mask
    if mask is not None:
        mask = ops.broadcast_to(mask, (*ops.shape(mask)[:2], source_length))
        mask = ops.pad(mask, ((0, 0), (0, 0), (0, padding)))
    plan = _Plan(length, block_size, blocks, mask, terms, dropout, seed)

    @ops.custom_gradient
    def attention(query, key, value, *tables):
        output, log_sum = plan.forward(query, key, value, tables)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return plan.backward(upstream, output, log_sum, query, key, value, tables)

        return output, gradient

    tables = [x for term in terms for x in (term.vectors, term.position_key)]
    return zero_masked_rows(attention(query, key, value, *tables), seen)


def _pad(x, padding):
    return ops.pad(x, ((0, 0), (0, 0), (0, padding), (0, 0)))


def _pad_term(term, padding):
    if term.of_keys:  # the furthest behind of the keys comes last
        rows = ops.pad(term.rows, ((padding, 0),))
        return dataclasses.replace(term, vectors=_pad(term.vectors, padding), rows=rows)
    return dataclasses.replace(term, rows=ops.pad(term.rows, ((0, padding),)))


@dataclasses.dataclass
class _Plan:
    """What stays the same from block to block; S is a multiple of the block size here."""

    length: object
    block_size: int
    blocks: object
    mask: object
    terms: list
    dropout: float
    seed: object

    def forward(self, query, key, value, tables):
        """The output, and the logarithm of each softmax's denominator (B, N, T, 1)."""
        dtype = query.dtype
        batch, heads, length, _ = ops.shape(query)

        def step(index, state):
            total, largest, denominator = state
            scores = self.scores(index, query, key, tables)
            new_largest = ops.maximum(largest, ops.max(scores, axis=-1, keepdims=True))
            weights = ops.exp(scores - new_largest)
            shrink = ops.exp(largest - new_largest)
            denominator = denominator * shrink + ops.sum(weights, axis=-1, keepdims=True)
            weights = ops.cast(self.drop(weights, index), dtype)
            added = ops.matmul(weights, self.block(value, index))
            return total * shrink + ops.cast(added, "float32"), new_largest, denominator

        column = ops.zeros((batch, heads, length, 1), dtype="float32")
        total = ops.zeros((batch, heads, length, value.shape[-1]), dtype="float32")
        state = (total, column + 2 * MASKED, column)
        total, largest, denominator = ops.fori_loop(0, self.blocks, step, state)
        return ops.cast(total / denominator, dtype), largest + ops.log(denominator)

    def backward(self, upstream, output, log_sum, query, key, value, tables):
        """The gradients by query, key, value and every term's vectors and table."""
        dtype = query.dtype
        product = ops.cast(upstream, "float32") * ops.cast(output, "float32")
        mean = ops.sum(product, axis=-1, keepdims=True)  # (B, N, T, 1)

        def step(index, state):
            by_query, by_key, by_value, *by_tables = state
            k, v = self.block(key, index), self.block(value, index)
            weights = ops.exp(self.scores(index, query, key, tables) - log_sum)
            dropped = ops.cast(self.drop(weights, index), dtype)
            by_value = self.put(by_value, index, ops.matmul(_transposed(dropped), upstream))
            by_weights = ops.cast(ops.matmul(upstream, _transposed(v)), "float32")
            by_weights = self.drop(by_weights, index)
            by_scores = ops.cast(weights * (by_weights - mean), dtype)
            by_query += ops.matmul(by_scores, k)
            by_key = self.put(by_key, index, ops.matmul(_transposed(by_scores), query))
            for i, term in enumerate(self.terms):
                given = _transposed(by_scores) if term.of_keys else by_scores
                vectors, rows, layout = self.part(term, tables[2 * i], index)
                by_vectors, by_table = relative_scores_gradient(
                    given, vectors, tables[2 * i + 1], rows, layout
                )
                if term.of_keys:
                    by_tables[2 * i] = self.put(by_tables[2 * i], index, by_vectors)
                else:
                    by_tables[2 * i] += by_vectors
                by_tables[2 * i + 1] += by_table
            return by_query, by_key, by_value, *by_tables

        state = tuple(ops.zeros_like(x) for x in (query, key, value, *tables))
        return ops.fori_loop(0, self.blocks, step, state)

    def scores(self, index, query, key, tables):
        """The scores of all queries and one block of keys, masked, float32."""
        scores = ops.matmul(query, _transposed(self.block(key, index)))
        for i, term in enumerate(self.terms):
            vectors, rows, layout = self.part(term, tables[2 * i], index)
            added = relative_scores_forward(vectors, tables[2 * i + 1], rows, layout)
            scores += _transposed(added) if term.of_keys else added
        scores = ops.cast(scores, "float32")
        if self.mask is not None:
            batch, rows, _ = ops.shape(self.mask)
            start = (0, 0, index * self.block_size)
            mask = ops.slice(self.mask, start, (batch, rows, self.block_size))
            scores += additive_mask(mask)
        return scores

    def part(self, term, vectors, index):
        """A term's vectors, rows and layout for one block of keys."""
        size = self.block_size
        start = index * size
        if term.of_keys:
            start = (self.blocks - 1) * size - start
            vectors = self.block(vectors, index)
            layout = Layout(size, self.length)
        else:
            # Windows of twice the block: the (T, S) scores are not to come back here.
            layout = Layout(self.length, size, -(-self.length // size))
        rows = ops.slice(term.rows, (start,), (self.length + size - 1,))
        return vectors, rows, layout

    def block(self, x, index):
        """The block of (B, N, S, H), (B, N, block, H)."""
        batch, heads, _, size = ops.shape(x)
        start = (0, 0, index * self.block_size, 0)
        return ops.slice(x, start, (batch, heads, self.block_size, size))

    def put(self, x, index, block):
        """(B, N, S, H) with one block of it replaced."""
        return ops.slice_update(x, (0, 0, index * self.block_size, 0), block)

    def drop(self, weights, index):
        """Attention dropout; the same weights again for the same block."""
        if not self.dropout:
            return weights
        seed = _FixedSeed(self.seed + ops.cast(index, self.seed.dtype) * 7919)
        return random.dropout(weights, self.dropout, seed=seed)


def _transposed(x):
    return ops.swapaxes(x, -1, -2)


class _FixedSeed(random.SeedGenerator):
    """One given seed, so that the gradient can draw the dropout of the forward pass again."""

    def __init__(self, seed):
        self._seed = seed

    def next(self, ordered=True):
        return self._seed
