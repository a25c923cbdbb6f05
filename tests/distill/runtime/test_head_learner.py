"""A file whose last layer learns takes the steps of Keras, and keeps what it learned."""

import pathlib
import re

import keras
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from distill.export.options import Export
from distill.export.tflite import export_tflite
from distill.runtime import HeadLearner, TextClassifier
from tfnlp.models import build_model, submodel
from tfnlp.utils.errors import InputError

LABELS = ["bad", "good"]
TEXTS = ["a fine film", "the plot is dull", "fine", "dull , dull", "정말 지루하다", "a film"]
APP = pathlib.Path(__file__).parents[3] / "docs/android/app/src/main/kotlin/tfnlp/app"
NAMES = ["good", "bad", "good", "bad", "bad", "none"]


@pytest.fixture(scope="module")
def learner(one_layer, tokenizer, tmp_path_factory):
    """A classifier, and its file whose last layer learns."""
    keras.utils.set_random_seed(0)
    model = build_model(one_layer, "classifier", 2)
    path = tmp_path_factory.mktemp("learner") / "model.tflite"
    options = Export(quantization="float32", trainable_head=True, max_length=16)
    export_tflite(model, path, tokenizer, LABELS, options)
    return model, path


def test_a_new_label_is_learned_as_keras_does(learner, tokenizer, tmp_path):
    model, path = learner
    on_device = HeadLearner(path, ["none"])
    assert on_device.labels == ["bad", "good", "none"]
    classifier = TextClassifier(path)
    # Before, the old labels have the file's probabilities among themselves.
    for text in TEXTS:
        old = classifier.predict([text])[0].probabilities
        new = on_device.predict([text])[0].probabilities
        assert new["good"] / new["bad"] == pytest.approx(old["good"] / old["bad"], rel=1e-5)

    dense = model.get_layer("classifier")
    inputs = tokenizer.encode(TEXTS, max_length=16).padded(range(6), tokenizer.pad_token_id)
    features = submodel(model.input, {"x": dense.input})(inputs)["x"]
    head = keras.Sequential([keras.Input((features.shape[-1],)), keras.layers.Dense(3)])
    kernel, bias = dense.get_weights()
    head.set_weights([np.pad(kernel, ((0, 0), (0, 1))), np.pad(bias, (0, 1))])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = float(0.5 / (np.mean(np.sum(np.square(features), axis=-1)) + 1))
    head.compile(keras.optimizers.SGD(rate), loss)
    targets = np.array([on_device.labels.index(name) for name in NAMES])
    expected = [float(head.train_on_batch(features, targets)) for _ in range(40)]
    losses = on_device.learn(TEXTS, NAMES, steps=40, learning_rate=0.5)
    np.testing.assert_allclose(losses, expected, atol=1e-5)
    for name, weight in zip(("kernel", "bias"), head.get_weights(), strict=True):
        np.testing.assert_allclose(on_device.backend.head[name], weight, atol=1e-5)

    on_device.learn(TEXTS, NAMES, steps=400, learning_rate=3.0)
    assert [x.label for x in on_device.predict(TEXTS)] == NAMES
    on_device.save(tmp_path / "head.npz")
    restored = HeadLearner(path)
    restored.restore(tmp_path / "head.npz")
    assert restored.labels == on_device.labels
    for a, b in zip(restored.predict(TEXTS), on_device.predict(TEXTS), strict=True):
        assert a.probabilities == b.probabilities
    # Another app reads the file as it was.
    assert TextClassifier(path).predict(TEXTS[:1])[0].probabilities.keys() == {*LABELS}


def test_the_layer_starts_from_zeros_and_from_new_labels_alone(learner):
    on_device = HeadLearner(learner[1], ["x", "y", "z"], keeps_old=False)
    zeros = on_device.backend.call("start_head", factor=np.zeros(1, "float32"))
    assert not zeros["kernel"].any() and not zeros["bias"].any()
    probabilities = on_device.predict(TEXTS[:1])[0].probabilities
    assert probabilities == pytest.approx({"x": 1 / 3, "y": 1 / 3, "z": 1 / 3})
    with pytest.raises(InputError, match="2 or more"):
        HeadLearner(learner[1], ["x"], keeps_old=False)


def test_second_texts_are_learned(learner):
    texts = [None, ["dull"], ["plot plot"]]
    losses = {HeadLearner(learner[1]).learn(["a"], ["good"], x, steps=1)[0] for x in texts}
    assert len(losses) == 3


def test_compiled_models_take_the_same_steps(learner):
    compiled = pytest.importorskip("ai_edge_litert.compiled_model")
    _, path = learner
    on_device = HeadLearner(path)
    before = on_device.backend.head
    features = np.random.default_rng(0).normal(size=(2, 32)).astype("float32")
    batch = {"features": features, "targets": np.eye(2, dtype="float32")}
    batch |= {"learning_rate": np.float32([0.1])} | before
    expected = on_device.backend.call("train_head", **batch)
    model, inputs, outputs = compiled.CompiledModel.from_file(str(path)), {}, {}
    for name, value in batch.items():
        model.resize_input_tensor_by_name("train_head", name, value.shape, strict=False)
    for name, value in batch.items():
        inputs[name] = model.create_input_buffer_by_name("train_head", name)
        inputs[name].write(value)
    for name in expected:
        outputs[name] = model.create_output_buffer_by_name("train_head", name)
    model.run_by_name("train_head", inputs, outputs)
    for name, value in expected.items():
        step = outputs[name].read(value.size, np.float32)
        np.testing.assert_allclose(np.reshape(step, value.shape), value, atol=1e-6)


def test_what_cannot_learn_is_told(learner, files, tmp_path):
    _, path = learner
    with pytest.raises(InputError, match="trainable_head"):
        HeadLearner(files["classifier"])
    with pytest.raises(InputError, match="each once"):
        HeadLearner(path, ["good"])
    learner = HeadLearner(path)
    with pytest.raises(InputError, match="'fun' is none"):
        learner.learn(["x"], ["fun"])
    with pytest.raises(InputError, match="2 texts have 1 labels"):
        learner.learn(["x", "y"], ["good"])
    np.savez(tmp_path / "other.npz", kernel=1, bias=1, labels=["a"], of="x")
    with pytest.raises(InputError, match="another file"):
        learner.restore(tmp_path / "other.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:100])
    (tmp_path / "empty.npz").touch()
    np.save(tmp_path / "array.npy", 1)
    for file in (path, *(tmp_path / name for name in ("cut.npz", "empty.npz", "array.npy"))):
        with pytest.raises(InputError, match="holds no weights"):
            learner.restore(file)


@pytest.mark.parametrize(
    ("classes", "options"), [(1, {}), (2, {"fixed_lengths": (8,)})], ids=["regression", "lengths"]
)
def test_files_without_a_layer_to_train_are_refused(
    classes, options, one_layer, tokenizer, tmp_path
):
    model = build_model(one_layer, "classifier", classes)
    options = Export(trainable_head=True, max_length=16, **options)
    with pytest.raises(InputError, match="trainable_head"):
        export_tflite(model, tmp_path / "x.tflite", tokenizer, LABELS[:classes], options)


def test_steps_that_are_too_long_change_nothing(learner):
    learner = HeadLearner(learner[1], ["none"])
    before = learner.backend.head["kernel"].copy()
    with pytest.raises(InputError, match="learning_rate"):
        learner.learn(TEXTS * 2, NAMES + NAMES[::-1], steps=3, learning_rate=1e4)
    np.testing.assert_array_equal(learner.backend.head["kernel"], before)


def test_the_kotlin_names_what_is_in_a_file(learner):
    signatures = Interpreter(str(learner[1])).get_signature_list()
    signatures.pop("run")
    names = {name for x in signatures.values() for name in [*x["inputs"], *x["outputs"]]}
    assert (
        set(re.findall(r'"([a-z_]+)"', (APP / "HeadLearner.kt").read_text()))
        == names | signatures.keys()
    )
