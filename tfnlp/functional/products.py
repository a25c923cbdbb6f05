"""Products with a table that all texts of a batch share."""

import math

from keras import ops

from tfnlp.functional.shapes import reshape


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
