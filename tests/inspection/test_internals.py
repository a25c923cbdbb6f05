"""Alignments, activations and gradient norms, against NumPy and finite sums."""

import numpy as np
import pytest
import tensorflow as tf

from tests.models.recurrent_witness import translate
from tests.models.test_recurrent import SIZES, inputs_of, with_random_biases
from tests.models.test_recurrent_translator import model_of
from tfnlp.functional.weighted_losses import cross_entropy
from tfnlp.inspection import (
    activations,
    alignments,
    gradient_norms,
    running_texts,
    states_over_text,
    token_texts,
    windows,
)
from tfnlp.models import RecurrentConfig, TransformerConfig, build_model
from tfnlp.plots import draw_alignments, draw_gradient_norms, plot_alignments
from tfnlp.text import plain_ids, train_tokenizer
from tfnlp.utils.errors import InputError

pytest.importorskip("matplotlib")


def language_model(cell, **fields):
    config = RecurrentConfig(cell=cell, **SIZES | fields)
    return with_random_biases(build_model(config, "causal_lm", memory=True))


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_gradients_over_time_are_those_of_the_memory(cell):
    model = language_model(cell, tie_embeddings=cell == "gru")
    ids = np.random.default_rng(0).integers(0, 60, (2, 9))
    found = gradient_norms(model, ids)
    assert found.shape == (8,)
    states = states_over_text(model, ids[:, :-1])
    for t in (1, 4, 7):  # the tokens read before
        memory = tf.constant(states[:, t - 1])
        labels = np.full((2, 8 - t), -100)
        labels[:, -1] = ids[:, -1]
        with tf.GradientTape() as tape:
            tape.watch(memory)
            inputs = {k: tf.constant(x) for k, x in inputs_of(ids[:, t:-1]).items()}
            logits = model(inputs | {"memory": memory})["logits"]
            loss = 2 * cross_entropy(tf.constant(labels, "int32"), logits)  # a sum over texts
        gradient = tape.gradient(loss, memory).numpy().reshape(2, -1)
        expected = np.linalg.norm(gradient, axis=1).mean()
        np.testing.assert_allclose(found[t - 1], expected, rtol=1e-4)
    # The states are the model's own.
    none = np.zeros((2, 2, 0, 16), "float32")
    memory = model(inputs_of(ids[:, :-1]) | {"memory": none})["memory"]
    np.testing.assert_allclose(states[:, -1], memory, atol=1e-6)


def test_a_gradient_vanishes_as_fast_as_its_weights_say():
    """Of small states, by which tanh is linear, each step takes the same half."""
    model = language_model("rnn", num_layers=1, initializer_range=1e-4)
    cell = model.get_layer("forward_0").cell
    cell.bias.assign(0 * cell.bias)
    cell.recurrent_kernel.assign(0.5 * np.eye(16))
    norms = gradient_norms(model, np.arange(1, 13)[None])
    np.testing.assert_allclose(norms[:-1] / norms[1:], 0.5, rtol=1e-4)
    figure = draw_gradient_norms({"halved": norms, "not": np.ones(11)})
    first, second = figure.axes[0].lines
    assert figure.axes[0].get_yscale() == "log"
    assert [first.get_label(), second.get_label()] == ["halved", "not"]
    np.testing.assert_array_equal(first.get_ydata(), norms[::-1])  # from the last token back


def test_pieces_of_a_text():
    pieces = windows(list(range(10)), 3, 16)
    assert pieces.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert windows(list(range(10)), 3, 1).tolist() == [[0, 1, 2, 3]]
    with pytest.raises(InputError, match="10 tokens, fewer than the 11 of a window of length=10"):
        windows(list(range(10)), 10, 1)


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_activations_are_states_and_colour_their_characters(cell):
    model, ids = language_model(cell), [3, 9, 27]
    none = np.zeros((1, 2, 0, 16), "float32")
    for layer in (0, None):
        found = activations(model, ids, layer)
        memory = model(inputs_of([ids]) | {"memory": none})["memory"][0, 1 if layer is None else 0]
        expected = np.tanh(memory[1]) if cell == "lstm" else memory[0]
        assert found.shape == (3, 16)
        np.testing.assert_allclose(found[-1], expected, atol=1e-6)
    with pytest.raises(InputError, match="layer=2 must be from 0 to 1"):
        activations(model, ids, 2)


@pytest.mark.parametrize(
    ("kind", "size", "family"),
    [("unigram", 80, "albert"), ("unigram", 80, "marian"), ("wordpiece", 80, "bert")]
    + [("bpe", 300, "gpt2")],
)
def test_a_text_in_its_tokens_has_its_spaces(kind, size, family):
    text = "the film is fine and the cast is dull"
    tokenizer = train_tokenizer([text] * 20 + ["a b c d"], kind, size, family)[0]
    (ids,) = plain_ids(tokenizer, [text])
    pieces = running_texts(tokenizer, ids)
    assert len(pieces) == len(ids) > 8
    assert "".join(pieces) == text
    end = tokenizer.special_token_ids[0]
    assert running_texts(tokenizer, [end, *ids]) == [tokenizer.token(end), *pieces]


def test_a_character_of_several_tokens_stands_where_it_is_whole():
    tokenizer = train_tokenizer(["a b c d"] * 9, "bpe", 260, "gpt2")[0]
    (ids,) = plain_ids(tokenizer, ["가 b"])
    assert running_texts(tokenizer, ids) == ["", "", "가", " b"]
    names = token_texts(tokenizer, ids[:3])
    assert names == [tokenizer.token(i) for i in ids[:3]] and "\ufffd" not in "".join(names)


def test_alignments_of_a_recurrent_translator_are_those_of_numpy(tmp_path):
    model = model_of({"start_token_id": 7})
    found = alignments(model, [3, 4, 5, 1], [8, 9])
    _, expected = translate(model, [3, 4, 5, 1], [7, 8, 9])
    np.testing.assert_allclose(found["attention"], expected, atol=1e-6)
    source, target = ["ein", "rotes", "Hemd", "</s>"], ["a", "shirt", "</s>"]
    figure = draw_alignments(found, source, target)
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.images[0].get_array(), found["attention"])
    assert [label.get_text() for label in axes.get_xticklabels()] == source
    assert [label.get_text() for label in axes.get_yticklabels()] == target
    assert plot_alignments(found, source, target, tmp_path / "alignment.png")
    with pytest.raises(ValueError, match=r"weights\['attention'\] has shape \(3, 4\), but there"):
        draw_alignments(found, source, target[:2])


def test_alignments_of_a_transformer_are_those_of_its_heads():
    sizes = {"vocabulary_size": 60, "num_layers": 2, "num_heads": 2, "hidden_dim": 16}
    config = TransformerConfig(**sizes, intermediate_dim=32, initializer_range=0.5)
    model = build_model(config, "sequence_to_sequence")
    found = alignments(model, [3, 4, 5, 1], [8, 9])
    scored = build_model(config, "sequence_to_sequence", attention_scores=True)
    scored.set_weights(model.get_weights())
    inputs = {"encoder_token_ids": [[3, 4, 5, 1]], "encoder_padding_mask": [[1] * 4]}
    inputs["decoder_token_ids"] = [[config.start_token_id, 8, 9]]
    outputs = scored({name: np.array(rows, "int32") for name, rows in inputs.items()})
    assert list(found) == [f"layer {i}, head {j}" for i in (1, 2) for j in (1, 2)]
    scores = np.concatenate(outputs["cross_attention_scores"], axis=1)[0]
    for weights, expected in zip(found.values(), tf.nn.softmax(scores), strict=True):
        np.testing.assert_allclose(weights, expected, atol=1e-5)


def test_other_models_are_refused():
    model = model_of({"attention": None})
    with pytest.raises(InputError, match="has no attention to a source"):
        alignments(model, [1, 2], [3])
    with pytest.raises(InputError, match="is no recurrent language model"):
        activations(model, [1, 2])
