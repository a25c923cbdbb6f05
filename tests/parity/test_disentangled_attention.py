"""Rows of DeBERTa's positions against `transformers`; test_families has whole models."""

import numpy as np
import pytest

from tests.parity.compare import near
from tfnlp.functional.positions import distance_rows, log_buckets

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
pytest.importorskip("transformers", reason="parity needs .[parity]")
from transformers.models.deberta_v2 import modeling_deberta_v2 as v2  # noqa: E402


@pytest.mark.parametrize("sizes", [(256, 512), (6, 40), (2, 5), (255, 512), (7, 20), (3, 9)])
def test_rows_are_the_reference_s_for_every_distance(sizes):
    num_buckets, max_distance = sizes
    rows = distance_rows(max_distance, num_buckets)
    reach = len(rows) // 2
    assert num_buckets % 2 or reach == max_distance
    distances = np.arange(-3 * reach, 3 * reach)
    theirs = v2.make_log_bucket_position(torch.tensor(distances), num_buckets, max_distance)
    near(log_buckets(distances, num_buckets, max_distance), theirs.long().numpy(), 0)
    span = num_buckets
    expected = (theirs.long() + span).clamp(0, 2 * span - 1).numpy()
    near(rows[np.clip(distances, -reach, reach) + reach], expected, 0)
