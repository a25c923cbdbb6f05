"""Rows of tables."""

import keras
import numpy as np
from keras import ops

# A table of so many rows or fewer is chosen from on JAX, not gathered from.
FEW_ROWS = 4


def table_rows(table, ids):
    """Return the rows `ids` of a table (R, D), (..., D).

    The gradient of a gather adds the rows of all tokens to those of a few segments, which takes 48
    of 59 ms of BERT-base's gradients on a GPU by XLA (docs/gpu.md). That of a choice is a sum.
    """
    if keras.backend.backend() != "jax" or table.shape[0] > FEW_ROWS:
        return ops.take(table, ids, axis=0)
    return chosen_rows(table, ids)


def chosen_rows(table, ids):
    """Return what `table_rows` does, NaN for ids that the table does not have."""
    rows = np.nan
    for number in range(table.shape[0]):
        rows = ops.where((ids == number)[..., None], table[number], rows)
    return rows
