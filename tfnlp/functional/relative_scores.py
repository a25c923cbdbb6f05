"""Scores by relative position: as they are defined, and by shifting rather than gathering."""

import dataclasses

from keras import ops

from tfnlp.functional.products import plain_product, times_table
from tfnlp.functional.relative_shift import shift_rows, unshift


def relative_scores(query, position_key, rows, source_length):
    """Compute `query_i . position_key[rows[T - 1 - i + j]]` for every query i and key j.

    Args:
        query: (B, N, T, H).
        position_key: (N, R, H), a table of projected positions.
        rows: (T + S - 1,) integers below R: the row of the table for each offset of a key
            from a query, the furthest behind first.
        source_length: S.

    Returns:
        (B, N, T, S).
    """
    length = ops.shape(query)[2]
    i, j = ops.arange(length)[:, None], ops.arange(source_length)[None]
    rows = ops.take(rows, length - 1 - i + j)  # (T, S)
    keys = ops.take(position_key, rows, axis=1)  # (N, T, S, H)
    return ops.einsum("bnth,ntsh->bnts", query, keys)


def num_blocks(length):
    """Return the number of query blocks; each block reads only the offsets that it needs.

    With 1 block a product has twice the columns in use, with 4 it has 5/4, with 8 it has 9/8. If
    blocks are short, the products get too small.
    """
    is_long = isinstance(length, int) and length >= 256 and length % 8 == 0
    return 8 if is_long else 4


class Layout:
    """Partition of T queries into blocks, each with a window of the offsets that it reads."""

    def __init__(self, length, source_length, num_blocks, causal=False):
        self.length = length
        self.source_length = source_length
        self.num_blocks = num_blocks
        self.block = -(-length // num_blocks)
        self.padding = num_blocks * self.block - length
        self.is_padded = num_blocks > 1 and not (
            isinstance(self.padding, int) and self.padding == 0
        )
        self.width = source_length + (1 if causal else self.block)

    def windows(self, rows):
        """Return each block's table rows, (blocks, width); the last query reads the first row."""
        starts = self.length - self.block * ops.arange(1, self.num_blocks + 1)
        columns = starts[:, None] + ops.arange(self.width)[None, :]
        last = ops.shape(rows)[0] - 1
        return ops.take(rows, ops.clip(columns, 0, last), axis=0)

    def cut(self, x):
        """Cut (B, N, T, X) into (B, N * blocks, block, X)."""
        batch, heads, _, size = ops.shape(x)
        if self.is_padded:
            x = ops.pad(x, ((0, 0), (0, 0), (0, self.padding), (0, 0)))
        return ops.reshape(x, (batch, heads * self.num_blocks, self.block, size))

    def join(self, x, heads):
        """Join (B, N * blocks, block, X), its first axes in any shape, to (B, N, T, X)."""
        size = ops.shape(x)[-1]
        x = ops.reshape(x, (-1, heads, self.num_blocks * self.block, size))
        if not self.is_padded:
            return x
        return ops.slice(x, (0, 0, 0, 0), (ops.shape(x)[0], heads, self.length, size))

    def sum_windows(self, x):
        """Sum (N * blocks, width, H) to (N, T + S, H); the rows are the offsets, not padded."""
        x = ops.reshape(x, (-1, self.num_blocks, self.width, x.shape[-1]))
        padded = []
        for n in range(self.num_blocks):
            start = self.length - self.block * (n + 1)
            end = self.length + self.source_length - start - self.width
            padded.append(ops.pad(x[:, n], ((0, 0), (start, end), (0, 0))))
        return sum(padded[1:], start=padded[0])

    def keys(self, position_key, windows):
        """Return the keys that each block reads, (N * blocks, width, H)."""
        heads, _, size = ops.shape(position_key)
        keys = ops.take(position_key, windows, axis=1)  # (N, blocks, width, H)
        return ops.reshape(keys, (heads * self.num_blocks, self.width, size))


def relative_scores_forward(query, keys, layout):
    """Compute `relative_scores` from `Layout.keys`, without a custom gradient."""
    heads = ops.shape(query)[1]
    x = times_table(layout.cut(query), ops.swapaxes(keys, -1, -2))
    x = shift_rows(x, layout.block, layout.width, layout.source_length)
    return layout.join(x, heads)


def relative_scores_gradient(upstream, query, keys, layout):
    """Compute the gradients of `relative_scores_forward` by `query` and `keys`."""
    x = unshift(layout.cut(upstream), layout.block, layout.width)
    by_query = layout.join(times_table(x, keys), ops.shape(query)[1])
    by_keys = ops.sum(ops.matmul(ops.swapaxes(x, -1, -2), layout.cut(query)), axis=0)
    return by_query, by_keys


def _sum_rows(by_keys, windows, shape):
    """Compute the gradient of `Layout.keys` by a table of `shape`."""
    heads, rows, size = shape
    x = ops.reshape(by_keys, (heads, -1, size))
    x = ops.reshape(ops.transpose(x, (1, 0, 2)), (-1, heads * size))
    x = ops.segment_sum(x, ops.reshape(windows, (-1,)), rows)
    return ops.transpose(ops.reshape(x, (rows, heads, size)), (1, 0, 2))


@dataclasses.dataclass
class RelativeTerm:
    """Term of the scores by relative position, `vectors . position_key[rows[...]]`.

    Args:
        name: of the term.
        factors: {name: tensor} of the vectors, (B, N, T, H) of the queries or (B, N, S, H) of
            the keys, and of the table of projected positions, (N, R, H).
        rows: (T + S - 1,), as `relative_scores` takes them.
        of_keys: whether the vectors are the keys', so that the scores come out transposed;
            the first row is then the furthest ahead.
        causal: whether the table has no rows for keys after the query's own.
        shares_rows: whether far offsets share a row; `rows` never fall then, or never rise.
    """

    name: str
    factors: dict
    rows: object
    of_keys: bool = False
    causal: bool = False
    shares_rows: bool = False

    def __post_init__(self):
        self.vectors, self.position_key = self.factors.values()

    def compute(self, length, source_length, product=plain_product):
        """Compute the scores, (B, N, T, S), as `relative_scores` does.

        They are products with the rows, which a shift aligns with the keys. Of a `causal` term
        those of keys after each query's own are not meaningful; the last query's own key is the
        last, and S + 1 rows are read.
        """
        if self.of_keys:
            length, source_length = source_length, length
        blocks = 1 if self.causal else num_blocks(length)
        layout = Layout(length, source_length, blocks, self.causal)
        windows = layout.windows(self.rows)

        @ops.custom_gradient
        def scores(vectors, position_key):
            keys = layout.keys(position_key, windows)

            def gradient(*args, upstream=None):
                upstream = args[0] if upstream is None else upstream
                by_vectors, by_keys = relative_scores_gradient(upstream, vectors, keys, layout)
                return by_vectors, _sum_rows(by_keys, windows, ops.shape(position_key))

            return relative_scores_forward(vectors, keys, layout), gradient

        factors = (product.round(name, factor) for name, factor in self.factors.items())
        x = product.round(self.name, scores(*factors))
        return ops.swapaxes(x, -1, -2) if self.of_keys else x


def query_to_position(position_query, position_key, rows, causal=False):
    """Return Transformer-XL's terms by position, `(q_i + v) . W_R R_{i-j}` (b and d).

    Dai et al. 2019, section 3.3. The arguments are those of `RelativeTerm`.
    """
    factors = {"position_query": position_query, "position_key": position_key}
    return RelativeTerm("position_scores", factors, rows, causal=causal)


def content_to_position(query, position_key, rows):
    """Return DeBERTa's term c2p, `q_i . k^r_{r(i, j)}` (He et al. 2020, eq. 4)."""
    factors = {"query": query, "position_key": position_key}
    return RelativeTerm("c2p", factors, rows, shares_rows=True)


def position_to_content(key, position_query, rows):
    """Return DeBERTa's term p2c, `k_j . q^r_{r(i, j)}` (He et al. 2020, eq. 4)."""
    factors = {"key": key, "position_query": position_query}
    return RelativeTerm("p2c", factors, ops.flip(rows), of_keys=True, shares_rows=True)


def position_to_position(query, position_product, rows):
    """Return DeBERTa's term p2p, `q^r_{r(i, j)} . k^r_{r(i, j)}` (He et al. 2020, eq. 2).

    Args:
        query: (B, N, T, H), for its shape alone.
        position_product: (N, R, 1), the product of each row's query and key.
        rows: as `relative_scores` takes them.
    """
    # One number for each head and row: vectors of length 1.
    factors = {"ones": ops.ones_like(query[..., :1]), "position_product": position_product}
    return RelativeTerm("p2p", factors, rows, shares_rows=True)


def row_products(queries, keys):
    """Compute the product of each row's query and key, (N, R, 1), for tables (N, R, H)."""
    return ops.sum(queries * keys, axis=-1, keepdims=True)
