import keras
import numpy as np
import pytest

from tfnlp.models import BertConfig, build_model
from tfnlp.training import adversarial

# Fresh, and long enough that each token has but a small part in the answer.
CONFIG = BertConfig(
    vocabulary_size=200,
    num_layers=3,
    num_heads=4,
    hidden_dim=64,
    intermediate_dim=128,
    max_length=64,
    dropout=0.0,
    attention_dropout=0.0,
)


@pytest.mark.parametrize("head", ["classifier", "tagger"])
def test_gradients_of_half_precision_reach_all_tokens(head, random_inputs):
    inputs = random_inputs(16, 64, 200)
    real = inputs["padding_mask"].astype(bool)
    inputs = {key: keras.ops.convert_to_tensor(value) for key, value in inputs.items()}
    found = []
    for dtype in ("float32", "mixed_float16"):
        keras.utils.set_random_seed(0)
        model = build_model(CONFIG, head, 2, dtype=dtype)
        regularizer = adversarial.AdversarialRegularizer(model, ["logits"], 1.0)
        x = keras.ops.cast(regularizer.embed(inputs), "float32")
        gradient = regularizer.gradient(
            inputs, model(inputs), x, 1.0, regularizer._start(keras.ops.shape(x))
        )
        found.append(np.array(gradient)[real])
    exact, half = found
    assert np.abs(exact).max(-1).min() > 0
    assert np.abs(half).max(-1).min() > 0
    # They point the same way: the cosine of most tokens is that of rounding.
    cosine = (exact * half).sum(-1) / np.linalg.norm(exact, axis=-1)
    assert np.median(cosine / np.linalg.norm(half, axis=-1)) > 0.9
