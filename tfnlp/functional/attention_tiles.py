"""Tiles of `blockwise_attention`: a block of queries and a block of keys at a time."""

from typing import NamedTuple

from keras import ops, random

from tfnlp.functional.block_sums import add_first, first_sum, rotate, stack_sums, zero_sums
from tfnlp.functional.masks import MASKED, additive_mask
from tfnlp.functional.products import fold_column, product_minus, times_table
from tfnlp.functional.relative_scores import (
    Layout,
    num_blocks,
    relative_scores_forward,
    relative_scores_gradient,
)
from tfnlp.functional.segment_scores import segment_scores, segment_scores_gradient


class TermTables(NamedTuple):
    """Tensors of the score terms, or their gradients, by block.

    Args:
        vectors: of each relative term, by block of queries or of keys, (blocks, B, N, size, H).
        positions: of each relative term, by `offset`, (tiles, N, 2 * size, H).
        by_segment: of the segment term, if there is one, (blocks, B, N, size, 2).
    """

    vectors: list
    positions: list
    by_segment: list

    @classmethod
    def of(cls, tensors, num_terms):
        """Return the tables of tensors in a row."""
        vectors, rest = tensors[:num_terms], tensors[num_terms:]
        return cls([*vectors], [*rest[:num_terms]], [*rest[num_terms:]])


class TilePlan:
    """State shared by all tiles; a tile is one block of queries and one block of keys.

    Arrays are held by block, (blocks, B, N, size, H), so that reading one is not a copy.
    """

    def __init__(self, block_size, lengths, terms=(), find_far=False, dropout=0.0, seed=None):
        length, source_length = self.lengths = lengths
        blocks = num_blocks(block_size)
        # Relative scores cut a tile's queries into so many.
        self.size = -(-block_size // blocks) * blocks
        self.query_blocks = -(-length // self.size)
        self.key_blocks = -(-source_length // self.size)
        self.terms = terms
        self.dropout = dropout
        self.seed = seed
        self.layout = Layout(self.size, self.size, num_blocks(self.size))
        self.windows = self.layout.windows(ops.arange(2 * self.size))
        self.rows = [self._padded_rows(term) for term in terms]
        find_far = find_far and terms and all(term.shares_rows for term in terms)
        self.far = self._far_tiles() if find_far else None

    def set_masks(self, mask, is_same=None):
        """Set the attention mask and the same-segment mask, padded to whole blocks.

        Each is None where there is nothing to mask, or no segments.
        """
        length, source_length = self.lengths
        if mask is None and not _is_zero(self._padding(source_length, True)):
            mask = ops.ones((1, 1, source_length), dtype="bool")
        self.mask, self.is_same = (
            x if x is None else self._padded(x, length, source_length) for x in (mask, is_same)
        )

    def _padded(self, mask, length, source_length):
        queries, keys = self._padding(length, False), self._padding(source_length, True)
        *outer, rows, _ = ops.shape(mask)
        mask = ops.broadcast_to(mask, (*outer, rows, source_length))
        rows = queries if not (isinstance(rows, int) and rows == 1) else 0
        return ops.pad(mask, (*((0, 0) for _ in outer), (0, rows), (0, keys)))

    def _padded_rows(self, term):
        """Return a term's rows by offset, for padded lengths."""
        length, source_length = self.lengths
        start = self._padding(*((source_length, True) if term.of_keys else (length, False)))
        count = (self.query_blocks + self.key_blocks) * self.size
        columns = ops.clip(ops.arange(count) - start, 0, length + source_length - 2)
        return ops.take(ops.convert_to_tensor(term.rows), columns)

    def _far_tiles(self):
        """Return by `offset` whether a tile is far: all its offsets map to one row of each term.

        The scores of a far tile are one number per query or key.
        """
        far = []
        for term, rows in zip(self.terms, self.rows, strict=True):
            rows = ops.reshape(rows, (-1, self.size))
            # The ends suffice, as rows never fall, or never rise.
            is_one = ops.equal(rows[:-1, 0], rows[1:, -1])
            far.append(ops.flip(is_one) if term.of_keys else is_one)
        return ops.all(ops.stack(far), axis=0)

    def tables(self, segments=()):
        """Return the `TermTables` of the relative terms, and of one or no segment term."""
        vectors = [self.split(term.vectors, term.of_keys) for term in self.terms]
        positions = map(self._positions_by_offset, self.terms, self.rows)
        by_segment = [self.split(term.by_segment) for term in segments]
        return TermTables(vectors, [*positions], by_segment)

    def _positions_by_offset(self, term, rows):
        """Return a term's positions by `offset`, (tiles, N, 2 * size, H)."""
        x = ops.take(term.position_key, rows, axis=1)  # (N, padded T + S, H)
        x = _split(x[None], self.size)[:, 0]
        # `slice`, as TensorFlow has the gradient of a strided one on one core.
        tiles, *shape = ops.shape(x)
        parts = [ops.slice(x, (n, 0, 0, 0), (tiles - 1, *shape)) for n in range(2)]
        x = ops.concatenate(parts, axis=2)
        return ops.flip(x, axis=0) if term.of_keys else x

    def split(self, x, of_keys=False):
        """Pad (B, N, L, H) to whole blocks, and split it into (blocks, B, N, size, H)."""
        padding = self._padding(self.lengths[of_keys], of_keys)
        x = x if _is_zero(padding) else ops.pad(x, ((0, 0), (0, 0), (0, padding), (0, 0)))
        return _split(x, self.size)

    def _padding(self, length, of_keys):
        blocks = self.key_blocks if of_keys else self.query_blocks
        return blocks * self.size - length

    def forward(self, query, key, value, tables):
        """Compute the output, and the logarithm of each softmax's denominator, by block."""
        dtype = query.dtype

        def over_queries(i, sums):
            q = _block(query, i)

            def over_keys(j, state):
                total, log_sum = state
                scores = self.scores((i, j), q, _block(key, j), tables)
                weights = ops.softmax(scores, axis=-1)
                # The tile's own log of its sum, from the largest score and its weight.
                largest, weight = (ops.max(x, axis=-1, keepdims=True) for x in (scores, weights))
                tile_log_sum = largest - ops.log(weight)
                weights = ops.cast(self.drop(weights, i, j), dtype)
                added = ops.cast(ops.matmul(weights, _block(value, j)), "float32")
                # By the tile's share of the sums: both shares are one, however they are rounded.
                share = ops.sigmoid(tile_log_sum - log_sum)
                total += (added - total) * share
                return (total, ops.logaddexp(log_sum, tile_log_sum)), total

            state = tuple(ops.zeros_like(first_sum(x)) for x in sums)
            state = state[0], state[1] + 2 * MASKED
            state = _one_by_one(self.key_blocks, over_keys, state)
            return _add_and_rotate(sums, state, 1), state[0]

        shape = ops.shape(query)[1:-1]
        sums = tuple(
            zero_sums(self.query_blocks, (*shape, width), "float32")
            for width in (value.shape[-1], 1)
        )
        output, log_sum = _one_by_one(self.query_blocks, over_queries, sums)
        return ops.cast(stack_sums(output), dtype), stack_sums(log_sum)

    def join(self, x):
        """Join (blocks, B, N, size, H) into (B, N, T, H), without the padding."""
        blocks, batch, heads, size, width = ops.shape(x)
        x = ops.reshape(ops.transpose(x, (1, 2, 0, 3, 4)), (batch, heads, blocks * size, width))
        return x[:, :, : self.lengths[0]]

    def backward(self, upstream, output, log_sum, inputs, tables):
        """Compute the gradients by query, key and value, and by the tables, `TermTables`."""
        query, key, value = inputs
        product = ops.cast(upstream, "float32") * ops.cast(output, "float32")
        mean = ops.sum(product, axis=-1, keepdims=True)  # (B, N, T, 1)
        # Operands of two products: the scores less log_sum, and by_weights less mean.
        for_scores = fold_column(query, key, log_sum)
        for_weights = (
            (upstream, value, mean) if self.dropout else fold_column(upstream, value, mean)
        )

        # Sums by block of queries, by block of keys and by offset, the first those of the tile.
        def over_keys(j, sums):
            by_queries, by_keys, by_offsets = sums
            k = _block(key, j)
            arrays = query, upstream, for_scores, for_weights

            def over_queries(i, state):
                by_queries, by_column, by_offsets = state
                of_queries, of_keys, by_positions = self.tile_gradients((i, j), arrays, k, tables)
                by_queries = _add_and_rotate(by_queries, of_queries, 1)
                by_offsets = _add_and_rotate(by_offsets, by_positions, -1)
                by_column = tuple(x + y for x, y in zip(by_column, of_keys, strict=True))
                return (by_queries, by_column, by_offsets), by_column[0]

            by_column = tuple(ops.zeros_like(first_sum(x)) for x in by_keys)
            state = by_queries, by_column, by_offsets
            state = _one_by_one(self.query_blocks, over_queries, state)
            by_queries, by_column, by_offsets = state
            by_keys = _add_and_rotate(by_keys, by_column, 1)
            by_offsets = tuple(rotate(x, self.query_blocks + 1) for x in by_offsets)
            return (by_queries, by_keys, by_offsets), by_column[0]

        of_queries, of_keys = [query], [key, value]
        for term, x in zip(self.terms, tables.vectors, strict=True):
            (of_keys if term.of_keys else of_queries).append(x)
        of_queries += tables.by_segment
        by_queries, by_keys, by_offsets = (
            tuple(zero_sums(ops.shape(x)[0], ops.shape(x)[1:], x.dtype) for x in arrays)
            for arrays in (of_queries, of_keys, tables.positions)
        )
        by_offsets = tuple(rotate(x, self.query_blocks - 1) for x in by_offsets)
        sums = _one_by_one(self.key_blocks, over_keys, (by_queries, by_keys, by_offsets))
        by_queries, by_keys, by_offsets = ([stack_sums(x) for x in group] for group in sums)
        by_query, *by_queries = by_queries
        by_key, by_value, *by_keys = by_keys
        of_queries, of_keys = iter(by_queries), iter(by_keys)
        by_vectors = [next(of_keys if term.of_keys else of_queries) for term in self.terms]
        return by_query, by_key, by_value, TermTables(by_vectors, by_offsets, [*of_queries])

    def tile_gradients(self, tile, arrays, k, tables):
        """Compute the gradients of a tile.

        Args:
            tile: the indices of its blocks of queries and keys, (i, j).
            arrays: by block, the query, the gradient by the output, and the arguments of
                `product_minus` for the scores and for the gradient by the weights.
            k: its block of keys.
            tables: `TermTables`.

        Returns:
            Lists of gradients by what its queries have, by what its keys have, and by positions.
        """
        i, j = tile
        query, upstream, for_scores, for_weights = arrays
        q, by_output = _block(query, i), _block(upstream, i)
        column = None if for_scores[2] is None else _block(for_scores[2], i)
        factors = _block(for_scores[0], i), _block(for_scores[1], j)
        weights = ops.exp(self.scores(tile, *factors, tables, column))
        dropped = ops.cast(self.drop(weights, i, j), query.dtype)
        by_v = ops.matmul(_transposed(dropped), by_output)
        column = None if for_weights[2] is None else _block(for_weights[2], i)
        factors = _block(for_weights[0], i), _block(for_weights[1], j)
        if self.dropout:
            by_weights = self.drop(product_minus(*factors, None), i, j) - column
        else:
            by_weights = product_minus(*factors, column)
        by_scores = ops.cast(weights * by_weights, query.dtype)
        of_queries = [ops.matmul(by_scores, k)]
        of_keys = [ops.matmul(_transposed(by_scores), q), by_v]
        by_vectors, by_positions = self.term_gradients(i, j, by_scores, tables)
        for term, x in zip(self.terms, by_vectors, strict=True):
            (of_keys if term.of_keys else of_queries).append(x)
        if self.is_same is not None:
            is_same = self.tile(self.is_same, i, j)
            of_queries.append(segment_scores_gradient(by_scores, is_same))
        return of_queries, of_keys, by_positions

    def term_gradients(self, i, j, by_scores, tables):
        """Compute the gradients of each term by a tile's vectors and by its positions."""
        count = len(self.terms)

        def near():
            by_vectors, by_positions = [], []
            for n, term in enumerate(self.terms):
                vectors, positions = self.part(n, tables, i, j)
                keys = self.layout.keys(positions, self.windows)
                upstream = _transposed(by_scores) if term.of_keys else by_scores
                by_tile, by_keys = relative_scores_gradient(upstream, vectors, keys, self.layout)
                by_vectors.append(by_tile)
                by_positions.append(self.layout.sum_windows(by_keys))
            return (*by_vectors, *by_positions)

        def far():
            by_vectors, by_positions = [], []
            for n, term in enumerate(self.terms):
                vectors, position = self.far_part(n, tables, i, j)
                axis = -2 if term.of_keys else -1
                total = ops.sum(ops.cast(by_scores, "float32"), axis=axis)[..., None]
                total = ops.cast(total, vectors.dtype)  # (B, N, size, 1)
                by_vectors.append(total * position)
                by_position = ops.sum(ops.matmul(_transposed(total), vectors), axis=0)
                rest = ((0, 0), (0, 2 * self.size - 1), (0, 0))
                by_positions.append(ops.pad(by_position, rest))
            return (*by_vectors, *by_positions)

        gradients = near() if self.far is None else ops.cond(self.is_far(i, j), far, near)
        return gradients[:count], gradients[count:]

    def scores(self, tile, q, k, tables, column=None):
        """Compute a tile's masked scores minus `column`, float32, from its blocks q and k."""

        i, j = tile

        def near():
            scores = product_minus(q, k, column)
            for n, term in enumerate(self.terms):
                vectors, positions = self.part(n, tables, i, j)
                keys = self.layout.keys(positions, self.windows)
                added = relative_scores_forward(vectors, keys, self.layout)
                added = ops.cast(added, "float32")
                scores += _transposed(added) if term.of_keys else added
            return scores

        def far():
            # Numbers for each query or key are features of the product: no pass over the scores.
            of_queries, of_keys = [q], [k]
            for n, term in enumerate(self.terms):
                vectors, position = self.far_part(n, tables, i, j)
                numbers = times_table(vectors, _transposed(position))  # (B, N, size, 1)
                ones = ops.ones_like(numbers)
                of_queries.append(ones if term.of_keys else numbers)
                of_keys.append(numbers if term.of_keys else ones)
            of_queries, of_keys = (ops.concatenate(x, axis=-1) for x in (of_queries, of_keys))
            return product_minus(of_queries, of_keys, column)

        scores = near() if self.far is None else ops.cond(self.is_far(i, j), far, near)
        if self.is_same is not None:
            (by_segment,) = tables.by_segment
            added = segment_scores(_block(by_segment, i), self.tile(self.is_same, i, j))
            scores += ops.cast(added, "float32")
        return scores if self.mask is None else scores + additive_mask(self.tile(self.mask, i, j))

    def tile(self, mask, i, j):
        """Return the tile of query block i and key block j of a padded mask (..., T or 1, S)."""
        *outer, rows, _ = ops.shape(mask)
        if isinstance(rows, int) and rows == 1:
            start, rows = 0, 1
        else:
            start, rows = i * self.size, self.size
        start = (*(0 for _ in outer), start, j * self.size)
        return ops.slice(mask, start, (*outer, rows, self.size))

    def is_far(self, i, j):
        """Return whether all offsets of a tile map to the same row."""
        return ops.take(self.far, self.offset(i, j))

    def far_part(self, n, tables, i, j):
        """Return the vectors of term n in a far tile, and its one position, (1, N, 1, H)."""
        vectors, positions = self.part(n, tables, i, j)
        return vectors, positions[None, :, :1]

    def part(self, n, tables, i, j):
        """Return the vectors of term n in a tile, and the positions of its offsets."""
        vectors = _block(tables.vectors[n], j if self.terms[n].of_keys else i)
        return vectors, _block(tables.positions[n], self.offset(i, j))

    def offset(self, i, j):
        """Return the index of a tile's diagonal; tiles on one diagonal have the same offsets."""
        return self.query_blocks - 1 - i + j

    def drop(self, weights, i, j):
        """Apply attention dropout; a tile always drops the same weights."""
        if not self.dropout:
            return weights
        tile = ops.cast(i * self.key_blocks + j, self.seed.dtype)
        return random.dropout(weights, self.dropout, seed=_FixedSeed(self.seed + 7919 * tile))


def _one_by_one(count, step, state):
    """Run `state, last = step(index, state)` for each index below `count`, one after another.

    TensorFlow starts later iterations early, which holds several tiles' scores in memory. The
    index therefore depends on `last`: no number is below minus infinity.
    """

    def body(index, state):
        state, last = step(index, state)
        never = ops.any(last[..., :1] < -float("inf"))
        return index + 1 - ops.cast(never, "int32"), state

    start = ops.convert_to_tensor(0, dtype="int32")
    return ops.while_loop(
        lambda index, state: index < count, body, (start, state), maximum_iterations=count
    )[1]


def _add_and_rotate(sums, added, steps):
    """Add to the first block of each of `sums`, and rotate each by `steps`."""
    return tuple(rotate(add_first(x, y), steps) for x, y in zip(sums, added, strict=True))


def _split(x, size):
    """Split (B, N, blocks * size, H) into (blocks, B, N, size, H)."""
    batch, heads, length, width = ops.shape(x)
    x = ops.reshape(x, (batch, heads, length // size, size, width))
    return ops.transpose(x, (2, 0, 1, 3, 4))


def _block(x, index):
    """Return block `index` of x, (blocks, ...)."""
    shape = ops.shape(x)[1:]
    return ops.squeeze(ops.slice(x, (index, *(0 for _ in shape)), (1, *shape)), axis=0)


def _is_zero(x):
    return isinstance(x, int) and x == 0


def _transposed(x):
    return ops.swapaxes(x, -1, -2)


class _FixedSeed(random.SeedGenerator):
    """Fixed seed, so that the gradient repeats the dropout of the forward pass."""

    def __init__(self, seed):
        self._seed = seed

    def next(self, ordered=True):
        return self._seed
