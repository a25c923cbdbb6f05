"""Nodes are gathered text by text."""

import numpy as np

from tests.layers.witnesses import rand
from tfnlp.layers import GatherNodes


def test_each_text_has_its_nodes():
    nodes, places = rand(3, 4, 2), np.random.default_rng(0).integers(0, 4, (3, 5, 2))
    expected = np.stack([x[i] for x, i in zip(nodes, places, strict=True)])
    np.testing.assert_array_equal(GatherNodes()(nodes, places), expected)
