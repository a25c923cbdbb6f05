"""Weights that must not move have not moved, and all others have."""

import dataclasses

import numpy as np
import pytest

from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.text import Examples
from tfnlp.training import FineTuning, RunFolder, Splits, TrainingConfig
from tfnlp.utils.errors import InputError

DATA = Examples(["a fine film", "the plot is dull"] * 4, labels=[1, 0] * 4)


@pytest.mark.parametrize(
    ("options", "frozen"),
    [
        ({"freeze_layers": 1}, ("encoder_0/",)),
        ({"freeze_layers": 2, "freeze_embeddings": True}, ("encoder_", "embeddings/")),
        ({"freeze_embeddings": True, "ema_decay": 0.5}, ("embeddings/",)),
    ],
    ids=str,
)
def test_frozen_weights_stay(options, frozen, tiny_config, tokenizer, tmp_path):
    config = dataclasses.replace(tiny_config, num_layers=2, num_segments=1)
    model = build_model(config, "classifier", 2)
    before = {v.path: np.array(v) for v in model.weights}
    settings = TrainingConfig(epochs=1, batch_size=4, learning_rate=1e-2, **options)
    data, run = Splits(DATA, DATA, 16), RunFolder(tmp_path / "run", {})
    FineTuning(Classification(["bad", "good"]), model, tokenizer, data, settings, run).run_all()
    same = {v.path for v in model.weights if (np.array(v) == before[v.path]).all()}
    due = {path for path in before if path.startswith(frozen)}
    # Attention does not depend on the biases of its keys, but for rounding.
    assert {path for path in same if "key/bias" not in path} == {
        path for path in due if "key/bias" not in path
    }
    assert due


@pytest.mark.parametrize(
    ("layers", "compress", "message"),
    [
        (3, None, "freeze_layers=3 is more than the model's 2 blocks"),
        (1, lambda *_: None, "freeze_layers=1 keeps blocks as they are, but compression"),
    ],
)
def test_what_cannot_stay_is_refused(layers, compress, message, tiny_config, tokenizer, tmp_path):
    model = build_model(dataclasses.replace(tiny_config, num_layers=2), "classifier", 2)
    data, run = Splits(DATA, DATA, 16), RunFolder(tmp_path / "run", {})
    tuning = FineTuning(
        *(Classification(["bad", "good"]), model, tokenizer, data),
        *(TrainingConfig(freeze_layers=layers), run),
        compress=compress,
    )
    with pytest.raises(InputError, match=message):
        tuning.run_all()
