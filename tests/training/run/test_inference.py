"""Texts to predictions, as docs/python.md has it."""

import dataclasses

import keras
import numpy as np
import pytest

from tfnlp.models import build_model
from tfnlp.tasks import Tagging
from tfnlp.text import Encodings, LengthBatches
from tfnlp.text.tokenizers.tokenizer import Encoding
from tfnlp.training import predict
from tfnlp.training.run.inference import evaluator, predictor
from tfnlp.utils.errors import InputError

TEXTS = ["a fine film", "정말 지루하다 !", "the plot is not dull , a fine film ."]


def test_outputs_for_each_token_and_texts_beyond_the_positions(tiny_config, tokenizer, caplog):
    model = build_model(tiny_config, "tagger", 3)
    with caplog.at_level("WARNING", "absl"):
        found = predict(model, tokenizer, [*TEXTS, "film " * 90], batch_size=3)["logits"]
    assert "1 of 4 texts were cut to max_length=48 tokens" in caplog.text
    assert [rows.shape for rows in found] == [(5, 3), (6, 3), (12, 3), (48, 3)]
    encoder = build_model(tiny_config)
    outputs = ("pooled_output", "sequence_output")
    found = predict(encoder, tokenizer, TEXTS, TEXTS[::-1], outputs=outputs)
    assert found["pooled_output"].shape == (3, 32)
    expected = encoder(tokenizer(TEXTS, TEXTS[::-1]))["pooled_output"]
    np.testing.assert_allclose(found["pooled_output"], expected, atol=1e-5)
    assert [len(rows) for rows in found["sequence_output"]] == [16, 11, 16]
    none = predict(encoder, tokenizer, [], outputs=outputs)
    assert none["pooled_output"].shape == (0, 32) and none["sequence_output"] == []
    with pytest.raises(InputError, match="max_length=0 leaves no room"):
        predict(encoder, tokenizer, TEXTS, max_length=0, outputs=outputs)


def test_outputs_of_each_layer_are_those_of_each_text_alone(tiny_config, tokenizer):
    config = dataclasses.replace(tiny_config, num_layers=2)
    model = build_model(
        config, hidden_states=True, attention_scores=True, attention_projections=True
    )
    outputs = ("hidden_states", "attention_scores", "values")
    found = predict(model, tokenizer, TEXTS, batch_size=2, outputs=outputs)
    for i, text in enumerate(TEXTS):
        alone = model(tokenizer([text]))
        for output in outputs:
            assert len(found[output][i]) == len(alone[output])
            for a, b in zip(found[output][i], alone[output], strict=True):
                assert a.shape == b[0].shape
                np.testing.assert_allclose(a, b[0], atol=1e-5)
    assert [scores[0].shape for scores in found["attention_scores"]] == [
        (4, length, length) for length in (5, 6, 12)
    ]
    assert predict(model, tokenizer, [], outputs=outputs) == {output: [] for output in outputs}


def test_outputs_of_the_texts_to_choose_from(tiny_config, tokenizer):
    model = build_model(tiny_config, "chooser", hidden_states=True)
    encodings = Encodings.from_list(
        tokenizer.encode([text for text in TEXTS for _ in range(2)][::-1])
    )
    encodings = dataclasses.replace(encodings, choices=2)
    outputs = ("logits", "pooled_output", "sequence_output", "hidden_states")
    found = predictor(model, outputs)(LengthBatches(encodings, 3, pad_token_id=0))
    for i, text in enumerate(TEXTS[::-1]):
        alone = model({key: x[:, None] for key, x in tokenizer([text] * 2).items()})
        np.testing.assert_allclose(found["logits"][i], alone["logits"][:, 0], atol=1e-5)
        for output in outputs[1:3]:
            np.testing.assert_allclose(found[output][i], alone[output], atol=1e-5)
        for a, b in zip(found["hidden_states"][i], alone["hidden_states"], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_loss_on_dev_is_the_mean_over_the_tokens_of_all_batches():
    keys = ("token_ids", "segment_ids", "padding_mask")
    inputs = {key: keras.Input((None,), dtype="int32", name=key) for key in keys}
    outputs = {"logits": keras.layers.Embedding(20, 3)(inputs["token_ids"])}
    model, task = keras.Model(inputs, outputs), Tagging(["O", "B-a", "I-a"])
    ids = [[5, 6, 7, 8, 9, 10], [11, 12], [13], [14, 15, 16]]
    encodings = [Encoding(row, [0] * len(row), truncated=False) for row in ids]
    tags = [[token % 3 for token in row] for row in ids]
    batches = LengthBatches(encodings, 2, tags)
    _, loss = evaluator(model, task, batches.signature())(batches)
    row, tags = np.concatenate(ids), np.concatenate(tags)
    scores = model({key: row[None] for key in keys})["logits"][0]
    each = keras.losses.sparse_categorical_crossentropy(tags, scores, from_logits=True)
    assert loss == pytest.approx(float(np.mean(each)), rel=1e-5)


def test_a_long_prediction_shows_its_progress(tiny_config, tokenizer, monkeypatch, capsys):
    monkeypatch.setattr("tfnlp.training.run.inference.PROGRESS_DELAY", 0)
    predict(build_model(tiny_config, "tagger", 3), tokenizer, TEXTS, batch_size=1)
    assert "predicting" in capsys.readouterr().err
