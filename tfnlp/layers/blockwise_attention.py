"""Attention over long inputs, a block of queries and a block of keys at a time."""

from keras import ops, random

from tfnlp.layers.dot_product_attention import (
    additive_mask,
    less,
    product_less,
    zero_masked_rows,
)
from tfnlp.layers.masks import MASKED
from tfnlp.layers.relative_scores import (
    NUM_BLOCKS,
    Layout,
    relative_scores_forward,
    relative_window_gradients,
)


def blockwise_attention(query, key, value, mask, block_size, terms=(), dropout=0.0, seed=None):
    """softmax(query . key + terms) . value without ever holding the (T, S) scores.

    Rabe & Staats 2021, 'Self-attention Does Not Need O(n^2) Memory', section 2: a running
    maximum, sum and weighted sum over blocks of keys, for each block of queries. The gradient
    computes each block's scores anew: with o the output and p the weights,
    ds = p * (dp - sum(do * o)).

    Args:
        query: (B, N, T, H), scaled already.
        key: (B, N, S, H).
        value: (B, N, S, H').
        mask: boolean, broadcasts to (B, T, S), or None.
        block_size: queries and keys in a block, made a multiple of 4.
        terms: `RelativeTerm`s to add to the scores.
        dropout: share of attention weights dropped.
        seed: the seed of that dropout, as `keras.random.SeedGenerator.next` gives it.

    Returns:
        (B, N, T, H'), zeros where a query may see nothing.
    """
    length, source_length = ops.shape(query)[2], ops.shape(key)[2]
    size = -(-block_size // NUM_BLOCKS) * NUM_BLOCKS  # relative scores cut a block in so many
    plan = _Plan(
        size,
        -(-length // size),
        -(-source_length // size),
        terms,
        dropout,
        seed,
    )
    plan.set_mask(mask, length, source_length)

    @ops.custom_gradient
    def attention(query, key, value, *tables):
        output, log_sum = plan.forward(query, key, value, tables)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return plan.backward(upstream, output, log_sum, query, key, value, tables)

        return output, gradient

    tables = [x for term in terms for x in plan.split_term(term, length, source_length)]
    blocks = plan.split(query), plan.split(key, True), plan.split(value, True)
    output = _joined(attention(*blocks, *tables))
    return zero_masked_rows(output[:, :, :length], mask)


class _Plan:
    """What stays the same from tile to tile, a tile being a block of queries and one of keys.

    Arrays are held by block, (blocks, B, N, size, H), so that reading one is not a copy.
    """

    def __init__(self, size, query_blocks, key_blocks, terms, dropout, seed):
        self.size = size
        self.query_blocks = query_blocks
        self.key_blocks = key_blocks
        self.terms = terms
        self.dropout = dropout
        self.seed = seed
        self.layout = Layout(size, size)
        self.windows = self.layout.windows(ops.arange(2 * size))

    def set_mask(self, mask, length, source_length):
        """The mask of the padded lengths; None where there is nothing to mask."""
        queries, keys = self._padding(length, False), self._padding(source_length, True)
        if mask is None and _is_zero(keys):
            self.mask = None
            return
        if mask is None:
            mask = ops.ones((1, 1, source_length), dtype="bool")
        batch, rows, _ = ops.shape(mask)
        mask = ops.broadcast_to(mask, (batch, rows, source_length))
        rows = queries if not (isinstance(rows, int) and rows == 1) else 0
        self.mask = ops.pad(mask, ((0, 0), (0, rows), (0, keys)))

    def split_term(self, term, length, source_length):
        """A term's vectors, and its positions by offset, (blocks, 1, N, size, H)."""
        queries, keys = self._padding(length, False), self._padding(source_length, True)
        rows = ops.pad(term.rows, ((keys, queries + 1) if term.of_keys else (queries, keys + 1),))
        positions = ops.take(term.position_key, rows, axis=1)  # (N, padded T + S, H)
        return self.split(term.vectors, term.of_keys), _split(positions[None], self.size)

    def split(self, x, of_keys=False):
        """(B, N, L, H), padded to whole blocks, as (blocks, B, N, size, H)."""
        padding = self._padding(ops.shape(x)[2], of_keys)
        x = x if _is_zero(padding) else ops.pad(x, ((0, 0), (0, 0), (0, padding), (0, 0)))
        return _split(x, self.size)

    def _padding(self, length, of_keys):
        blocks = self.key_blocks if of_keys else self.query_blocks
        return blocks * self.size - length

    def forward(self, query, key, value, tables):
        """The output, and the logarithm of each softmax's denominator, by block."""
        dtype = query.dtype
        blocks, batch, heads, size, _ = ops.shape(query)

        def over_queries(i, state):
            def over_keys(j, state):
                total, log_sum = state
                scores = self.scores(i, j, query, key, None, tables)
                weights = ops.softmax(scores, axis=-1)
                # The tile's own log of its sum, from the largest score and its weight.
                largest, weight = (ops.max(x, axis=-1, keepdims=True) for x in (scores, weights))
                tile_log_sum = largest - ops.log(weight)
                weights = ops.cast(self.drop(weights, i, j), dtype)
                added = ops.cast(ops.matmul(weights, _block(value, j)), "float32")
                # By the tile's share of the sums: both shares are one, however they are rounded.
                share = ops.sigmoid(tile_log_sum - log_sum)
                return total + (added - total) * share, ops.logaddexp(log_sum, tile_log_sum)

            block = tuple(ops.zeros_like(_block(x, i)) for x in state)
            block = (block[0], block[1] + 2 * MASKED)
            block = _one_by_one(self.key_blocks, over_keys, block)
            return tuple(_put(x, i, y) for x, y in zip(state, block, strict=True))

        shape = (blocks, batch, heads, size, value.shape[-1])
        state = (ops.zeros(shape, "float32"), ops.zeros((*shape[:-1], 1), "float32"))
        output, log_sum = _one_by_one(self.query_blocks, over_queries, state)
        return ops.cast(output, dtype), log_sum

    def backward(self, upstream, output, log_sum, query, key, value, tables):
        """The gradients by query, key, value and every term's vectors and table."""
        dtype = query.dtype
        product = ops.cast(upstream, "float32") * ops.cast(output, "float32")
        mean = ops.sum(product, axis=-1, keepdims=True)  # (B, N, T, 1)
        # What two products are of: the scores less log_sum, and by_weights less mean.
        for_scores = less(query, key, log_sum)
        for_weights = (upstream, value, mean) if self.dropout else less(upstream, value, mean)

        def over_keys(j, state):
            by_query, by_key, by_value, *by_tables = state
            k, v = _block(key, j), _block(value, j)

            def over_queries(i, state):
                by_query, by_k, by_v, *by_tables = state
                q, by_output = _block(query, i), _block(upstream, i)
                weights = ops.exp(self.scores(i, j, *for_scores, tables))
                dropped = ops.cast(self.drop(weights, i, j), dtype)
                by_v += ops.matmul(_transposed(dropped), by_output)
                column = None if for_weights[2] is None else _block(for_weights[2], i)
                factors = _block(for_weights[0], i), _block(for_weights[1], j)
                if self.dropout:
                    by_weights = self.drop(product_less(*factors, None), i, j) - column
                else:
                    by_weights = product_less(*factors, column)
                by_scores = ops.cast(weights * by_weights, dtype)
                by_query = _add(by_query, i, ops.matmul(by_scores, k)[None])
                by_k += ops.matmul(_transposed(by_scores), q)
                by_tables = self.add_terms(by_tables, by_scores, tables, i, j)
                return by_query, by_k, by_v, *by_tables

            state = (by_query, ops.zeros_like(k), ops.zeros_like(v), *by_tables)
            state = _one_by_one(self.query_blocks, over_queries, state)
            by_query, by_k, by_v, *by_tables = state
            return by_query, _put(by_key, j, by_k), _put(by_value, j, by_v), *by_tables

        state = tuple(ops.zeros_like(x) for x in (query, key, value, *tables))
        return _one_by_one(self.key_blocks, over_keys, state)

    def add_terms(self, by_tables, by_scores, tables, i, j):
        """The gradients by the terms' vectors and tables, with those of a tile added."""
        by_tables = list(by_tables)
        for n, term in enumerate(self.terms):
            given = _transposed(by_scores) if term.of_keys else by_scores
            vectors, positions, first = self.part(n, tables, i, j)
            by_vectors, by_windows = relative_window_gradients(
                given, vectors, positions, self.windows, self.layout
            )
            block = j if term.of_keys else i
            by_tables[2 * n] = _add(by_tables[2 * n], block, by_vectors[None])
            by_positions = self.layout.sum_windows(by_windows)  # (N, 2 * size, H)
            by_positions = _split(by_positions[None], self.size)
            by_tables[2 * n + 1] = _add(by_tables[2 * n + 1], first, by_positions)
        return by_tables

    def scores(self, i, j, query, key, column, tables):
        """The scores of a tile, masked, float32, less a block of `column`."""
        column = None if column is None else _block(column, i)
        scores = product_less(_block(query, i), _block(key, j), column)
        for n, term in enumerate(self.terms):
            vectors, positions, _ = self.part(n, tables, i, j)
            added = relative_scores_forward(vectors, positions, self.windows, self.layout)
            added = ops.cast(added, "float32")
            scores += _transposed(added) if term.of_keys else added
        if self.mask is None:
            return scores
        batch, rows, _ = ops.shape(self.mask)
        if isinstance(rows, int) and rows == 1:
            start, rows = (0, 0, j * self.size), 1
        else:
            start, rows = (0, i * self.size, j * self.size), self.size
        return scores + additive_mask(ops.slice(self.mask, start, (batch, rows, self.size)))

    def part(self, n, tables, i, j):
        """The vectors and positions of term n in a tile, and the first block of these."""
        vectors, positions = tables[2 * n : 2 * n + 2]
        if self.terms[n].of_keys:
            first = self.key_blocks - 1 - j + i
        else:
            first = self.query_blocks - 1 - i + j
        positions = ops.slice(positions, (first, 0, 0, 0, 0), (2, *positions.shape[1:]))
        vectors = _block(vectors, j if self.terms[n].of_keys else i)
        return vectors, ops.squeeze(_joined(positions), axis=0), first

    def drop(self, weights, i, j):
        """Attention dropout; the same weights again for the same tile."""
        if not self.dropout:
            return weights
        tile = ops.cast(i * self.key_blocks + j, self.seed.dtype)
        return random.dropout(weights, self.dropout, seed=_FixedSeed(self.seed + 7919 * tile))


def _one_by_one(count, step, state):
    """`state = step(index, state)` for each index below `count`.

    TensorFlow runs what it can of the next iterations at once, and several tiles' scores are in
    memory then. So the index waits for the state: nothing is below minus infinity.
    """

    def body(index, state):
        state = tuple(step(index, state))
        never = ops.any(state[0][..., :1] < -float("inf"))
        return index + 1 - ops.cast(never, "int32"), state

    start = ops.convert_to_tensor(0, dtype="int32")
    return ops.while_loop(
        lambda index, state: index < count, body, (start, state), maximum_iterations=count
    )[1]


def _split(x, size):
    """(B, N, blocks * size, H) as (blocks, B, N, size, H)."""
    batch, heads, length, width = ops.shape(x)
    x = ops.reshape(x, (batch, heads, length // size, size, width))
    return ops.transpose(x, (2, 0, 1, 3, 4))


def _joined(x):
    """(blocks, B, N, size, H) as (B, N, blocks * size, H)."""
    blocks, batch, heads, size, width = ops.shape(x)
    return ops.reshape(ops.transpose(x, (1, 2, 0, 3, 4)), (batch, heads, blocks * size, width))


def _block(x, index):
    """Of (blocks, B, N, size, H) the block `index`."""
    shape = ops.shape(x)[1:]
    return ops.squeeze(ops.slice(x, (index, 0, 0, 0, 0), (1, *shape)), axis=0)


def _put(x, index, block):
    """(blocks, ...) with one block replaced."""
    return ops.slice_update(x, (index, *(0 for _ in block.shape)), block[None])


def _add(x, index, added):
    """(blocks, ...) with `added` (n, ...) added to n blocks from `index` on."""
    indices = index + ops.arange(added.shape[0], dtype="int32")[:, None]
    return ops.scatter_update(x, indices, added, reduction="add")


def _is_zero(x):
    return isinstance(x, int) and x == 0


def _transposed(x):
    return ops.swapaxes(x, -1, -2)


class _FixedSeed(random.SeedGenerator):
    """One given seed, so that the gradient can draw the dropout of the forward pass again."""

    def __init__(self, seed):
        self._seed = seed

    def next(self, ordered=True):
        return self._seed
