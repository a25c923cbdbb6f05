"""Adaptive input against NumPy."""

import numpy as np

from tfnlp.layers import AdaptiveEmbedding


def test_adaptive_embedding_is_scaled_rows_of_narrower_tables_projected():
    """Baevski & Auli 2018, section 3: each cluster's table and projection, times sqrt(D)."""
    layer = AdaptiveEmbedding(10, 8, (4, 7), div_value=2)
    found = np.asarray(layer(np.arange(10)[None]))[0]
    starts = [0, 4, 7]
    for i, (table, projection) in enumerate(zip(layer.tables, layer.projections, strict=True)):
        assert table.shape[1] == (8, 4, 2)[i]
        expected = 8**0.5 * table.numpy() @ projection.numpy()
        rows = found[starts[i] : starts[i] + len(expected)]
        np.testing.assert_allclose(rows, expected, atol=1e-6)
