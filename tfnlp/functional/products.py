"""Products of tensors, and of a tensor with a table that all texts of a batch share."""

import math

from keras import ops

from tfnlp.functional.shapes import reshape


class PlainProducts:
    """Products of a float layer: `compute` of the factors.

    `tfnlp.quantization.rounded_products` has those of a fake-quantised layer, which rounds factors
    and results by their names.
    """

    def __call__(self, name, compute=ops.matmul, **factors):
        return compute(*factors.values())

    def round(self, name, x):
        return x


plain_product = PlainProducts()


def times_transposed(a, b):
    """Compute `a . b^T`, (..., T, S), for a (..., T, H) and b (..., S, H)."""
    return ops.matmul(a, ops.swapaxes(b, -1, -2))


def times_table(x, table):
    """Compute `x . table`, one table for the whole batch, or one for each head.

    A single matrix multiplies all rows at once: oneDNN, as TensorFlow 2.21 has it, writes out of
    bounds where it is broadcast instead (docs/onednn_matmul.md), and the gradient by the table
    needs no sum over the batch.

    Args:
        x: (..., T, H).
        table: (..., H, W), its first axes of sizes that broadcast to those of x.

    Returns:
        (..., T, W).
    """
    if len(x.shape) == 2 or None in table.shape[:-2] or math.prod(table.shape[:-2]) != 1:
        return ops.matmul(x, table)
    sizes = ops.shape(x)
    rows, columns = ops.shape(table)[-2:]
    y = ops.matmul(ops.reshape(x, (-1, rows)), ops.reshape(table, (rows, columns)))
    return reshape(y, (*sizes[:-1], columns))


def fold_column(a, b, column):
    """Return the arguments of `product_minus`, the column folded into a and b if in float32.

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


def product_minus(a, b, column):
    """Compute a . b^T, minus `column` if it is not None, (B, N, T, S) float32."""
    product = ops.cast(ops.matmul(a, ops.swapaxes(b, -1, -2)), "float32")
    return product if column is None else product - column
