"""BERT against `transformers` on the same weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.checkpoints import load_model, save_model

torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs tfnlp[parity]")

SIZES = [
    {"hidden_act": "gelu"},
    {"hidden_act": "gelu_new", "num_hidden_layers": 1, "num_attention_heads": 2},
    {"hidden_act": "relu", "type_vocab_size": 3, "layer_norm_eps": 1e-6},
]


def reference(folder, cls=None, **sizes):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        **{
            "vocab_size": 99,
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "max_position_embeddings": 520,
            "initializer_range": 0.2,
            "attn_implementation": "eager",
        }
        | sizes
    )
    model = (cls or transformers.BertModel)(config).eval()
    model.save_pretrained(folder)
    return model


def run_reference(model, inputs, **kwargs):
    return model(
        input_ids=torch.tensor(inputs["token_ids"]).long(),
        token_type_ids=torch.tensor(inputs["segment_ids"]).long(),
        attention_mask=torch.tensor(inputs["padding_mask"]).long(),
        **kwargs,
    )


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("length", "masked"), [(1, False), (2, True), (7, True), (128, True)])
def test_forward(sizes, length, masked, tmp_path, random_inputs):
    theirs = reference(tmp_path, **sizes)
    ours = load_model(tmp_path, hidden_states=True, attention_scores=True)
    inputs = random_inputs(3, length, 99, masked)
    found = ours(inputs)
    with torch.no_grad():
        expected = run_reference(theirs, inputs, output_hidden_states=True, output_attentions=True)
    real = inputs["padding_mask"][..., None]
    for a, b in zip(found["hidden_states"], expected.hidden_states, strict=True):
        np.testing.assert_allclose(a * real, b.numpy() * real, atol=1e-5)
    np.testing.assert_allclose(found["pooled_output"], expected.pooler_output, atol=1e-5)
    bias = (1.0 - inputs["padding_mask"])[:, None, None, :] * -1e9
    for scores, attention in zip(found["attention_scores"], expected.attentions, strict=True):
        np.testing.assert_allclose(tf.nn.softmax(scores + bias), attention, atol=1e-5)


def test_forward_at_512(tmp_path, random_inputs):
    theirs = reference(tmp_path)
    inputs = random_inputs(1, 512, 99)
    with torch.no_grad():
        expected = run_reference(theirs, inputs).last_hidden_state.numpy()
    real = inputs["padding_mask"][..., None]
    found = load_model(tmp_path)(inputs)["sequence_output"]
    np.testing.assert_allclose(found * real, expected * real, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_gradients(masked, tmp_path, random_inputs):
    theirs = reference(tmp_path, transformers.BertForSequenceClassification, num_labels=3)
    ours = load_model(tmp_path, "classifier")
    inputs = random_inputs(4, 17, 99, masked)
    labels = np.array([0, 2, 1, 1])
    run_reference(theirs, inputs, labels=torch.tensor(labels)).loss.backward()
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with tf.GradientTape() as tape:
        loss = loss_of(labels, ours(inputs)["logits"])
    found = dict(
        zip(
            [v.path for v in ours.trainable_variables],
            tape.gradient(loss, ours.trainable_variables),
            strict=True,
        )
    )
    from tfnlp.checkpoints.bert_map import BERT

    expected = dict(theirs.named_parameters())
    checked = 0
    largest = max(float(p.grad.abs().max()) for p in expected.values())
    for weight in BERT.weights(ours).values():
        path, transpose = weight.path, weight.transpose
        name = weight.name if weight.head else f"bert.{weight.name}"
        gradient = expected[name].grad.numpy()
        gradient = gradient.T if transpose else gradient
        ours_gradient = tf.convert_to_tensor(found[path]).numpy()
        # A key's bias shifts all scores of a query alike, so its gradient is rounding alone.
        scale = max(np.abs(gradient).max(), 1e-5 * largest)
        assert np.abs(ours_gradient - gradient).max() <= 1e-4 * scale + 1e-7, path
        checked += 1
    assert checked == len(ours.trainable_variables) == len(expected)


def test_saved_model_loads_in_transformers_with_the_same_logits(
    tmp_path, tiny_config, tokenizer, random_inputs
):
    from tfnlp.models import build_model

    model = build_model(tiny_config, "classifier", 3)
    save_model(model, tmp_path, ["x", "y", "z"], tokenizer)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    inputs = random_inputs(4, 11, tiny_config.vocabulary_size)
    with torch.no_grad():
        expected = run_reference(theirs, inputs).logits.numpy()
    np.testing.assert_allclose(model(inputs)["logits"], expected, atol=1e-6)
    assert theirs.config.id2label == {0: "x", 1: "y", 2: "z"}
    text = "the film is not dull , unbelievable 영화"
    theirs_ids = transformers.AutoTokenizer.from_pretrained(tmp_path)(text)["input_ids"]
    assert theirs_ids == tokenizer.encode([text])[0].token_ids


def test_real_minilm_weights(minilm, random_inputs):
    theirs = transformers.AutoModel.from_pretrained(minilm).eval()
    ours = load_model(minilm, hidden_states=True)
    for length in (5, 64):
        inputs = random_inputs(2, length, 30522)
        with torch.no_grad():
            expected = run_reference(theirs, inputs, output_hidden_states=True)
        real = inputs["padding_mask"][..., None]
        for a, b in zip(ours(inputs)["hidden_states"], expected.hidden_states, strict=True):
            np.testing.assert_allclose(a * real, b.numpy() * real, atol=1e-5)


def test_training_mode_without_dropout_is_the_same(tmp_path, random_inputs):
    reference(tmp_path, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = load_model(tmp_path)
    inputs = random_inputs(2, 9, 99)
    np.testing.assert_array_equal(
        model(inputs, training=True)["sequence_output"], model(inputs)["sequence_output"]
    )


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(policy, tmp_path, random_inputs):
    theirs = reference(tmp_path, initializer_range=0.05)
    inputs = random_inputs(3, 20, 99)
    with torch.no_grad():
        expected = run_reference(theirs, inputs).pooler_output.numpy()
    found = load_model(tmp_path, dtype=policy)(inputs)["pooled_output"]
    tolerance = 0.002 if policy == "mixed_float16" else 0.015
    np.testing.assert_allclose(tf.cast(found, "float32"), expected, atol=tolerance)


def test_keras_file_keeps_the_model(tmp_path, tiny_config, random_inputs):
    from tfnlp.models import build_model

    model = build_model(tiny_config, "classifier", 2, attention_scores=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inputs = random_inputs(2, 6, tiny_config.vocabulary_size)
    np.testing.assert_array_equal(loaded(inputs)["logits"], model(inputs)["logits"])
    save_model(loaded, tmp_path / "folder")
    again = load_model(tmp_path / "folder", "classifier")
    np.testing.assert_array_equal(again(inputs)["logits"], model(inputs)["logits"])
