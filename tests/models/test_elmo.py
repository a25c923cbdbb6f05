"""ELMo: its states, a task's network on them, folders, and a file of its layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from distill.export.conversion import to_tflite
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import ElmoConfig, build_model
from tfnlp.text import load_tokenizer, train_tokenizer

TEXTS = ["a fine film, a film", "정말 좋은 영화 , 정말", "a plot"]
SIZES = {"hidden_dim": 8, "intermediate_dim": 10, "filters": (3, 4), "dropout": 0.0}


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, "words", 100)[0]


@pytest.fixture(scope="module")
def model(tokenizer):
    config = ElmoConfig(tokenizer.vocabulary_size, 9, **SIZES)
    return build_model(config, "bidirectional_lm", hidden_states=True)


def test_layers_are_residual_and_padding_changes_nothing(model, tokenizer):
    inputs = tokenizer(TEXTS[:2])
    outputs = model(inputs)
    vectors, first, second = outputs["hidden_states"]
    words = model.get_layer("word_vectors")(inputs["characters"])
    np.testing.assert_allclose(vectors, np.concatenate([words, words], -1), atol=1e-6)
    mask = inputs["padding_mask"] > 0
    halves = []
    for half, direction in zip(np.split(first, 2, -1), ("forward", "backward"), strict=True):
        due = model.get_layer(f"{direction}_0")(words, mask=mask)
        np.testing.assert_allclose(half, due, atol=1e-6)
        halves.append(half + model.get_layer(f"{direction}_1")(half, mask=mask))
    np.testing.assert_allclose(second, np.concatenate(halves, -1), atol=1e-6)
    output = model.get_layer("lm_output")
    for half, name in zip(halves, ("forward_logits", "backward_logits"), strict=True):
        np.testing.assert_allclose(outputs[name], output(half), atol=1e-6)
    alone = model(tokenizer(TEXTS[1]))["hidden_states"]
    length = int(mask[1].sum())
    for state, due in zip(outputs["hidden_states"], alone, strict=True):
        np.testing.assert_allclose(state[1, :length], due[0], atol=1e-6)


def test_a_task_trains_what_is_above_the_language_model(model, tokenizer, tmp_path):
    save_model(model, tmp_path, tokenizer=tokenizer)
    task, loaded = load_model(tmp_path, "tagger", 3), load_tokenizer(tmp_path)
    inputs = loaded([*TEXTS, "Unseen wörter"])
    for layer in ("word_vectors", "forward_0", "backward_1"):
        due = model.get_layer(layer).get_weights()
        for weight, value in zip(task.get_layer(layer).get_weights(), due, strict=True):
            np.testing.assert_array_equal(weight, value)
    trained = {weight.path.split("/")[0] for weight in task.trainable_weights}
    assert trained == {"word_embeddings", "mix", "task_forward_0", "task_backward_0", "classifier"}
    for name in ("lstm_cell/kernel", "lstm_cell/recurrent_kernel", "token_table"):
        assert all(np.std(w) > 0.01 for w in task.trainable_weights if w.path.endswith(name))

    # The network reads [word embedding; ELMo]; words that are not predicted have one embedding.
    states = np.stack(model(inputs)["hidden_states"], axis=-2)
    ids = np.where(inputs["token_ids"] < 9, inputs["token_ids"], 1)
    table = task.get_layer("word_embeddings").token_table.numpy()
    x = np.concatenate([table[ids], task.get_layer("mix")(states)], -1)
    mask = inputs["padding_mask"] > 0
    forward = task.get_layer("task_forward_0")(x, mask=mask)[0]
    backward = np.flip(task.get_layer("task_backward_0")(x, mask=mask)[0], 1)
    outputs = task(inputs)
    due = np.concatenate([forward, backward], -1)
    np.testing.assert_allclose(outputs["sequence_output"], due, atol=1e-5)
    save_model(task, tmp_path / "task", ["x", "y", "z"], loaded)
    again = load_model(tmp_path / "task", "tagger")
    np.testing.assert_array_equal(again(inputs)["logits"], outputs["logits"])


def test_states_convert_to_tflite_without_flex(model, tokenizer):
    names = ("characters", "padding_mask")
    inputs = {name: tokenizer(TEXTS[0])[name] for name in names}
    last = keras.Model({name: model.input[name] for name in names}, model.output["hidden_states"])

    def run(characters, padding_mask):
        return {"states": last({"characters": characters, "padding_mask": padding_mask})[-1]}

    specs = [tf.TensorSpec(inputs[name].shape, "int32", name) for name in names]
    content = to_tflite(last, {"serving_default": (run, specs)}, "float32")
    found = Interpreter(model_content=content).get_signature_runner()(**inputs)["states"]
    np.testing.assert_allclose(found, last(inputs)[-1], atol=1e-5)
