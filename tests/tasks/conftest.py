"""Fixtures of tasks."""

import numpy as np
import pytest

from tfnlp.text import Examples
from tfnlp.training import Splits


@pytest.fixture
def noisy_splits():
    """Returns splits of so many texts whose labels no model can all tell, half of them on dev."""

    def make(count):
        rng = np.random.default_rng(0)
        words = ["fine", "dull", "plot", "film"]
        texts = [" ".join(rng.choice(words, 6)) for _ in range(count)]
        labels = [int(t.split().count("fine") + rng.integers(0, 3) > 2) for t in texts]
        train = Examples(texts, None, labels)
        return Splits(train, Examples(texts[: count // 2], None, labels[: count // 2]), 16)

    return make
