"""Fresh heads start as those of `transformers` do."""

import keras
import numpy as np
import pytest

from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import BertConfig, build_model


@pytest.mark.parametrize(
    ("head", "loaded"),
    [("classifier", True), ("tagger", False), ("answerer", True), ("chooser", False)],
)
def test_fresh_heads_are_normal_with_the_deviation_of_the_config(head, loaded, tmp_path):
    config = BertConfig(40, 1, 2, 1024, 8, initializer_range=0.05)
    keras.utils.set_random_seed(3)
    classes = 40 if head in ("classifier", "tagger") else None
    if loaded:
        save_model(build_model(config), tmp_path)
        model = load_model(tmp_path, head, classes)
    else:
        model = build_model(config, head, classes)
    kernel = model.get_layer("span" if head == "answerer" else "classifier").kernel
    # Cut at two deviations it would be 0.044.
    assert np.std(kernel) == pytest.approx(0.05, rel=0.06)
    assert np.abs(kernel).max() > 0.1
