"""BERT against `transformers` on the same weights."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.checkpoints import load_model

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")


def run_reference(model, inputs, **kwargs):
    return model(
        input_ids=torch.tensor(inputs["token_ids"]).long(),
        token_type_ids=torch.tensor(inputs["segment_ids"]).long(),
        attention_mask=torch.tensor(inputs["padding_mask"]).long(),
        **kwargs,
    )


def test_real_minilm_weights(minilm, random_inputs):
    theirs = transformers.AutoModel.from_pretrained(minilm, attn_implementation="eager").eval()
    ours = load_model(minilm, hidden_states=True, attention_scores=True)
    for length in (1, 7, 512):
        inputs = random_inputs(2, length, 30522)
        asked = {"output_hidden_states": True, "output_attentions": True}
        with torch.no_grad():
            expected = run_reference(theirs, inputs, **asked)
        found, mask = ours(inputs), inputs["padding_mask"]
        for a, b in zip(found["hidden_states"], expected.hidden_states, strict=True):
            shown = mask[..., None]
            np.testing.assert_allclose(a * shown, b * shown, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found["pooled_output"], expected.pooler_output, atol=1e-5)
        for scores, attention in zip(found["attention_scores"], expected.attentions, strict=True):
            weights = tf.nn.softmax(scores + (mask[:, None, None, :] - 1.0) * 1e9)
            np.testing.assert_allclose(weights, attention, rtol=1e-4, atol=1e-5)
    half = load_model(minilm, dtype="mixed_float16")(inputs)["pooled_output"]
    np.testing.assert_allclose(tf.cast(half, "float32"), expected.pooler_output, atol=0.02)
