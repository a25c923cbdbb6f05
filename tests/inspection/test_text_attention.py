"""The attention that is shown is the model's, its terms add up, and gradients are differences."""

import keras
import numpy as np
import pytest

from tests.models.small import sizes, tokenizer_of
from tests.models.test_recurrent_translator import model_of as recurrent_model_of
from tfnlp.inspection import LayerAttention, PositionTable, attention_of
from tfnlp.knowledge import EntityTokenizer
from tfnlp.models import TransformerConfig, build_model, config_by_name, with_entities
from tfnlp.models.text_model import submodel
from tfnlp.plots import attention_page
from tfnlp.text.tokenizers.special_tokens import end_token_id
from tfnlp.utils.errors import InputError

TERMS = {"deberta": 3, "deberta_v3": 3, "xlnet": 5, "transformer_xl": 4}


def model_of(family, head="classifier", **more):
    """Return a random model with an own tokenizer."""
    tokenizer = tokenizer_of(family)
    fields = {"hidden_dim": 16} | (
        {} if family in ("textcnn", "bag", "static") else {"num_layers": 2}
    )
    if config_by_name(family).attends:
        fields |= {"num_heads": 2, "initializer_range": 0.3}
    fields |= {"vocabulary_size": tokenizer.vocabulary_size, **more}
    config = config_by_name(family, **fields, pad_token_id=tokenizer.pad_token_id)
    return build_model(config, head, 2 if head == "classifier" else None), tokenizer


def translator():
    tokenizer = tokenizer_of("gpt2")
    fields = sizes(vocabulary_size=tokenizer.vocabulary_size, hidden_dim=16, max_length=30)
    config = TransformerConfig(**fields, end_token_id=end_token_id(tokenizer))
    return build_model(config, "sequence_to_sequence"), tokenizer


def scores_of(model, inputs, name="attention_scores"):
    """Return the scores that a model of the same weights gives."""
    classes = model.output["logits"].shape[-1] if model.head == "classifier" else None
    scored = build_model(model.text_config, model.head, classes, attention_scores=True)
    scored.set_weights(model.get_weights())
    return [np.asarray(x)[0] for x in scored(inputs)[name]]


@pytest.mark.parametrize(
    "family",
    ["albert", "bag", "bert", "deberta", "deberta_v3", "gpt2", "lstm", "transformer_xl", "xlnet"],
)
def test_every_kind_of_family_is_shown_as_it_runs(family):
    model, tokenizer = model_of(family)
    shown = attention_of(model, tokenizer, "a fine film", "정말 영화예요")
    page = attention_page(shown)
    assert page.html.startswith("<!DOCTYPE html>") and len(page.summary) == 1
    attends = config_by_name(family).attends
    assert bool(shown.layers) == attends == page.svg.startswith("<svg")
    (saliency,) = shown.saliency.values()
    assert saliency.shape == (len(shown.tokens["tokens"]),) and np.abs(saliency).max() > 0
    if not attends:
        assert "no attention" in page.summary[0]
        return
    scores = scores_of(model, tokenizer(["a fine film"], ["정말 영화예요"]))
    assert [layer.name for layer in shown.layers] == ["layer 1", "layer 2"]
    for layer, expected in zip(shown.layers, scores, strict=True):
        seen = layer.visible
        np.testing.assert_allclose(layer.scores[seen], expected[seen], atol=1e-5)
        weights = np.exp(np.where(seen, expected, -np.inf))
        weights /= weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(layer.weights, weights, atol=1e-5)
        assert seen.all() == (family not in ("gpt2", "transformer_xl"))
        assert len(layer.terms) == TERMS.get(family, 0)
        if layer.terms:
            np.testing.assert_allclose(sum(layer.terms.values()), layer.scores, atol=1e-4)
            np.testing.assert_allclose(sum(layer.shares.values()), 1, atol=1e-4)


def test_local_blocks_are_shown_with_near_tokens_alone():
    model, tokenizer = model_of("modernbert", local_attention=4)
    shown = attention_of(model, tokenizer, "a fine film", "정말 영화예요")
    places = np.arange(len(shown.tokens["tokens"]))
    assert shown.layers[0].visible.all()
    near = np.abs(places[:, None] - places) <= 2
    assert (shown.layers[1].visible == near).all() and not near.all()


def test_hidden_places_and_constants_of_a_row_have_no_share():
    first = np.array([[[1, -1, 100], [5, 5, 5]]], "float32")
    second = np.array([[[2, -2, -500], [7, 7, 7]]], "float32")
    visible = np.array([[[True, True, False], [True, True, True]]])
    terms = {"first": first, "second": second}
    scores, weights, saliency = first + second, np.zeros((1, 2, 3)), np.zeros((1, 3))
    names = "layer 1", "", "tokens", "tokens"
    shares = LayerAttention(*names, scores, weights, visible, terms, saliency).shares
    np.testing.assert_allclose([shares["first"], shares["second"]], [[1 / 3], [2 / 3]])


def test_both_streams_of_xlnet_and_the_mask_decoder_of_deberta():
    model, tokenizer = model_of("xlnet", "permutation_lm")
    shown = attention_of(model, tokenizer, "정말 영화예요")
    streams = [(layer.name, layer.stream) for layer in shown.layers]
    layers = ("layer 1", "layer 2")
    assert streams == [(name, s) for name in layers for s in ("content", "query")]
    length = len(shown.tokens["tokens"])
    inputs = dict(tokenizer(["정말 영화예요"]))
    order = np.random.default_rng(0).permutation(length)[None].astype("int32")
    inputs |= {"permutation_order": order, "target_mapping": np.eye(length, dtype="int32")[None]}
    for layer, expected in zip(shown.layers[1::2], scores_of(model, inputs), strict=True):
        np.testing.assert_allclose(layer.scores, expected, atol=1e-5)
        # Each sees what comes before it in the order, the content stream itself too.
        before = order[0][None, :] < order[0][:, None]
        assert (layer.visible == before).all()
    assert (shown.layers[0].visible == before | np.eye(length, dtype=bool)).all()
    model, tokenizer = model_of("deberta", "masked_lm", enhanced_mask_decoder=True)
    names = [layer.name for layer in attention_of(model, tokenizer, "a fine film").layers]
    assert names == [*layers, "mask decoder pass 1", "mask decoder pass 2"]


def test_a_translator_looks_at_itself_and_at_the_source():
    model, tokenizer = translator()
    shown = attention_of(model, tokenizer, "a fine film", "the plot")
    parts = {layer.name: layer for layer in shown.layers}
    lengths = {name: len(words) for name, words in shown.tokens.items()}
    assert lengths["target read"] == lengths["target written"]
    assert set(shown.saliency) == {"source", "target read"}
    for part, rows, columns, name in (
        ("encoder", "source", "source", "encoder_attention_scores"),
        ("decoder", "target read", "target read", "attention_scores"),
        ("decoder to source", "target written", "source", "cross_attention_scores"),
    ):
        ids = tokenizer.encode_closed(["a fine film", "the plot"], model.text_config.end_token_id)
        source, target = (np.array([row.token_ids], "int32") for row in ids)
        start = [[model.text_config.start_token_id]]
        inputs = {"encoder_token_ids": source, "encoder_padding_mask": np.ones_like(source)}
        inputs["decoder_token_ids"] = np.hstack([start, target[:, :-1]]).astype("int32")
        for i, expected in enumerate(scores_of(model, inputs, name), 1):
            layer = parts[f"{part} layer {i}"]
            assert (layer.rows, layer.columns) == (rows, columns)
            assert layer.scores.shape == (2, lengths[rows], lengths[columns])
            np.testing.assert_allclose(layer.scores, expected, atol=1e-5)
    with pytest.raises(InputError, match="give the translation as the pair"):
        attention_of(model, tokenizer, "a fine film")
    with pytest.raises(InputError, match=r"has \d+ tokens, but the model only 30 positions"):
        attention_of(model, tokenizer, "a fine film " * 20, "the plot")


def test_a_recurrent_translator_aligns():
    tokenizer = translator()[1]
    model = recurrent_model_of({"vocabulary_size": tokenizer.vocabulary_size})
    shown = attention_of(model, tokenizer, "a film", "the plot")
    (layer,) = shown.layers
    assert (layer.name, layer.rows, layer.columns) == ("alignment", "target written", "source")
    np.testing.assert_allclose(layer.weights.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(np.exp(layer.scores), layer.weights, atol=1e-5)
    np.testing.assert_array_equal(layer.saliency[0], shown.saliency["source"])


def test_entities_attend_too():
    bert, tokenizer = model_of("bert", None)
    entities = EntityTokenizer.of(tokenizer, {"film": 1, "fine": 2})
    model = with_entities(bert, np.random.default_rng(0).normal(size=(3, 8)), 1, num_heads=2)
    shown = attention_of(model, entities, "a fine film")
    names = [layer.name for layer in shown.layers]
    assert names == ["layer 1", "layer 2", "entities layer 1"]
    # Entities, and the first token with them, are seen; the prediction is of the states.
    seen = shown.layers[2].visible[0].any(0)
    assert seen.sum() == 3 and seen[0] and "half the squared norm" in shown.prediction


def test_gradient_times_input_is_the_slope_of_the_answer():
    """By a head's values scaled, and by a token's vector scaled."""
    keras.utils.set_random_seed(0)
    model, tokenizer = model_of("bert")
    inputs = tokenizer(["a fine film"])
    inputs = {name: inputs[name] for name in model.input}
    shown = attention_of(model, tokenizer, "a fine film")
    assert shown.prediction == "the highest of the logits"
    highest = int(np.argmax(model(inputs)["logits"][0]))

    def check(saliency, answer):
        slope = (answer(1.01) - answer(0.99)) / 2e-2
        assert slope == pytest.approx(saliency, rel=1e-2, abs=1e-4)

    value = model.get_layer("encoder_1").attention.value
    kept = value.get_weights()
    for head in (0, 1):

        def of_head(scale, head=head):
            columns = np.where(np.arange(16) // 8 == head, scale, 1)
            value.set_weights([x * columns for x in kept])
            return float(model(inputs)["logits"][0, highest])

        check(shown.layers[1].saliency[head].sum(), of_head)
    value.set_weights(kept)
    vectors = model.get_layer("embeddings").output
    rest = submodel({"vectors": vectors, **model.input}, model.output["logits"])
    x = np.array(submodel(model.input, vectors)(inputs))
    for token in range(x.shape[1]):

        def of_token(scale, token=token):
            scales = np.where(np.arange(x.shape[1]) == token, scale, 1)[:, None]
            return float(rest({"vectors": x * scales, **inputs})[0, highest])

        check(shown.saliency["tokens"][token], of_token)


def test_rows_of_any_length_are_compared_by_their_angle():
    rows = np.array([[3, 4], [0, 0], [-0.3, -0.4]])
    similarity = PositionTable("learned positions", ["0", "1", "2"], rows).similarity
    np.testing.assert_allclose(similarity, [[1, 0, -1], [0, 0, 0], [-1, 0, 1]], atol=1e-12)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bert", "learned positions"),
        ("deberta_v3", "learned distances"),
        ("xlnet", "sinusoids of distances"),
    ],
)
def test_position_encodings_are_those_of_the_model(family, name):
    model, tokenizer = model_of(family)
    shown = attention_of(model, tokenizer, "a fine film")
    (table,) = shown.positions
    length = len(shown.tokens["tokens"])
    assert table.name == name
    assert np.diag(table.similarity) == pytest.approx(1, abs=1e-5)
    if family == "bert":
        rows = np.asarray(model.get_layer("embeddings").position_table)[:length]
        np.testing.assert_array_equal(table.rows, rows)
        assert table.labels == [str(i) for i in range(length)]
        return
    assert table.labels[0] == str(1 - length) and table.labels[-1] == f"+{length - 1}"
    if family == "deberta_v3":
        layer = model.get_layer("relative_positions")
        rows = np.asarray(layer(layer.table))
        # Row k + d of the table is of a key d tokens before its query.
        expected = rows[layer.num_buckets + np.arange(length - 1, -length, -1)]
        np.testing.assert_allclose(table.rows, expected, atol=1e-6)
