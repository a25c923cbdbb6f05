"""The encoder-decoder transformer; what `transformers` has of it is in tests/parity."""

import keras
import numpy as np
import pytest

from tfnlp.models import SIZES as NAMED
from tfnlp.models import TransformerConfig, build_model, check_lengths, config_by_name
from tfnlp.utils.errors import InputError

SIZES = {
    "vocabulary_size": 20,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "max_length": 16,
}
TWO_TABLES = {"share_embeddings": False, "target_vocabulary_size": 15, "tie_embeddings": False}
CASES = {
    "post-norm": {},
    "pre-norm": {"norm_first": True, "num_decoder_layers": 1},
    "two tables": TWO_TABLES | {"output_bias": True},
}


def make(fields, **kwargs):
    model = build_model(TransformerConfig(**SIZES | fields), "sequence_to_sequence", **kwargs)
    rng = np.random.default_rng(0)
    weights = [w + rng.normal(size=w.shape, scale=0.3) for w in model.get_weights()]
    model.set_weights(weights)
    return model


def make_inputs(source=5, target=4):
    rng = np.random.default_rng(1)
    return {
        "encoder_token_ids": rng.integers(0, 20, (2, source)).astype("int32"),
        "encoder_padding_mask": np.ones((2, source), "int32"),
        "decoder_token_ids": rng.integers(0, 15, (2, target)).astype("int32"),
    }


@pytest.mark.parametrize("fields", CASES.values(), ids=CASES)
def test_padding_and_later_tokens_change_nothing(fields):
    model = make(fields)
    inputs = make_inputs()
    expected = model(inputs)["logits"]
    assert expected.shape == (2, 4, model.text_config.decoder.vocabulary_size)
    longer = dict(inputs)
    for name, fill in (("encoder_token_ids", 7), ("encoder_padding_mask", 0)):
        longer[name] = np.pad(inputs[name], ((0, 0), (0, 3)), constant_values=fill)
    longer["decoder_token_ids"] = np.pad(
        inputs["decoder_token_ids"], ((0, 0), (0, 2)), constant_values=9
    )
    np.testing.assert_allclose(model(longer)["logits"][:, :4], expected, atol=1e-5)
    seen = dict(longer, encoder_padding_mask=np.ones((2, 8), "int32"))
    assert np.abs(model(seen)["logits"][:, :4] - expected).max() > 0.01


@pytest.mark.parametrize("fields", CASES.values(), ids=CASES)
def test_a_saved_model_is_the_same(fields, tmp_path):
    asked = {"hidden_states": True, "attention_scores": True, "attention_projections": True}
    model = make(fields, **asked)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.text_config == model.text_config and loaded.head == "sequence_to_sequence"
    expected, found = model(make_inputs()), loaded(make_inputs())
    keras.tree.map_structure(np.testing.assert_array_equal, expected, found)
    assert [v.path for v in loaded.trainable_variables] == [
        v.path for v in model.trainable_variables
    ]


def test_requested_outputs_are_of_all_blocks():
    model = make(
        {"num_decoder_heads": 4, "num_decoder_layers": 3},
        hidden_states=True,
        attention_scores=True,
        attention_projections=True,
    )
    found = model(make_inputs(5, 4))
    shapes = {
        "hidden_states": (4, (2, 4, 8)),
        "encoder_hidden_states": (3, (2, 5, 8)),
        "attention_scores": (3, (2, 4, 4, 4)),
        "cross_attention_scores": (3, (2, 4, 4, 5)),
        "encoder_attention_scores": (2, (2, 2, 5, 5)),
        "queries": (3, (2, 4, 4, 2)),
        "cross_queries": (3, (2, 4, 4, 2)),
        "cross_keys": (3, (2, 4, 5, 2)),
        "cross_values": (3, (2, 4, 5, 2)),
        "encoder_keys": (2, (2, 2, 5, 4)),
    }
    for name, (count, shape) in shapes.items():
        assert [x.shape for x in found[name]] == [shape] * count, name
        assert len(model.output[name]) == count
    for queries, keys, scores in (
        ("queries", "keys", "attention_scores"),
        ("cross_queries", "cross_keys", "cross_attention_scores"),
    ):
        for q, k, s in zip(found[queries], found[keys], found[scores], strict=True):
            product = q.numpy() @ k.numpy().swapaxes(2, 3) / np.sqrt(2)
            np.testing.assert_allclose(s, product, atol=1e-5)
    np.testing.assert_array_equal(found["sequence_output"], found["hidden_states"][-1])
    np.testing.assert_array_equal(found["encoder_output"], found["encoder_hidden_states"][-1])


def test_the_first_states_are_scaled_rows_and_sinusoids():
    model = make({}, hidden_states=True)
    inputs = make_inputs()
    table = model.get_layer("embeddings").token_table.numpy()
    angles = np.arange(5)[:, None] / 10000.0 ** (np.arange(4) / 4)
    places = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    found = model(inputs)
    for name, ids in (("encoder_hidden_states", "encoder"), ("hidden_states", "decoder")):
        rows = inputs[f"{ids}_token_ids"]
        expected = np.sqrt(8) * table[rows] + places[: rows.shape[1]]
        np.testing.assert_allclose(found[name][0], expected, atol=1e-6)
    logits = found["sequence_output"].numpy() @ table.T
    np.testing.assert_allclose(found["logits"], logits, atol=1e-5)


@pytest.mark.parametrize("fields", CASES.values(), ids=CASES)
def test_half_precision_is_near_and_its_logits_are_float32(fields):
    whole = make(fields)
    half = make(fields, dtype="mixed_bfloat16")
    half.set_weights(whole.get_weights())
    found, expected = half(make_inputs())["logits"], whole(make_inputs())["logits"]
    assert found.dtype == "float32" and half.output["logits"].dtype == "float32"
    assert 0 < np.abs(found - expected).max() < 0.05 * np.abs(expected).max()


def test_blocks_of_attention_give_the_same():
    whole, cut, inputs = make({}), make({}, block_size=4), make_inputs(11, 9)
    cut.set_weights(whole.get_weights())
    assert cut.block_size == 4 and whole.block_size is None
    np.testing.assert_allclose(cut(inputs)["logits"], whole(inputs)["logits"], atol=1e-5)


def test_parameters_of_named_sizes():
    def count(v, d, f, layers):
        attention, norm = 4 * (d * d + d), 2 * d
        feed_forward = 2 * d * f + f + d
        encoder = attention + feed_forward + 2 * norm
        decoder = 2 * attention + feed_forward + 3 * norm
        return v * d + layers * (encoder + decoder)

    assert NAMED["transformer_base"] == TransformerConfig()
    for name, sizes in (
        ("transformer_base", (37000, 512, 2048, 6)),
        ("transformer_tiny", (10000, 128, 256, 4)),
    ):
        model = build_model(NAMED[name], "sequence_to_sequence")
        assert model.count_params() == count(*sizes)
    assert model.count_params() == 2_605_056
    assert config_by_name("transformer", "transformer_tiny", vocabulary_size=50).num_layers == 4
    assert config_by_name("transformer").hidden_dim == 256


def test_fresh_weights_are_those_of_the_authors_code():
    model = build_model(config_by_name("transformer"), "sequence_to_sequence")
    table = model.get_layer("embeddings").token_table
    assert np.std(table) == pytest.approx(256**-0.5 * 0.88, rel=0.01)  # cut at 2 deviations
    kernel = model.get_layer("decoder_1").feed_forward.intermediate.kernel
    assert np.abs(kernel).max() == pytest.approx(np.sqrt(6 / (256 + 1024)), rel=0.01)


def test_texts_longer_than_the_positions_are_refused():
    class Batches:
        lengths = (17,)

    with pytest.raises(InputError, match="only 16 positions"):
        check_lengths(Batches, make({}))
