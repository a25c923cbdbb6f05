"""A folder of a small classifier."""

import pytest

from tfnlp.checkpoints import save_model
from tfnlp.models import build_model


@pytest.fixture
def saved(tmp_path, tiny_config, tokenizer):
    model = build_model(tiny_config, "classifier", 2)
    save_model(model, tmp_path, ["bad", "good"], tokenizer)
    return tmp_path
