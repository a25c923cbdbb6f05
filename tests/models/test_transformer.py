"""The encoder-decoder transformer; what `transformers` has of it is in tests/parity."""

import numpy as np
import pytest

from tests.models.small import sizes
from tfnlp.models import SIZES as NAMED
from tfnlp.models import TransformerConfig, build_model, config_by_name

SIZES = sizes(max_length=16)
TWO_TABLES = {"share_embeddings": False, "target_vocabulary_size": 15, "tie_embeddings": False}
CASES = {
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


def test_projections_are_of_all_blocks():
    asked = {"attention_scores": True, "attention_projections": True}
    model = make({"num_decoder_heads": 4, "num_decoder_layers": 3}, **asked)
    outputs = model(make_inputs(5, 4))
    shapes = {
        "queries": (3, (2, 4, 4, 2)),
        "cross_queries": (3, (2, 4, 4, 2)),
        "cross_values": (3, (2, 4, 5, 2)),
        "encoder_keys": (2, (2, 2, 5, 4)),
    }
    for name, (count, shape) in shapes.items():
        assert [x.shape for x in outputs[name]] == [shape] * count, name
    for prefix in ("", "cross_"):
        names = (prefix + name for name in ("queries", "keys", "attention_scores"))
        for q, k, s in zip(*(outputs[name] for name in names), strict=True):
            product = q.numpy() @ k.numpy().swapaxes(2, 3) / np.sqrt(2)
            np.testing.assert_allclose(s, product, atol=1e-5)


def test_the_last_states_of_pre_norm_stacks_are_normalised():
    model = build_model(TransformerConfig(**SIZES | CASES["pre-norm"]), "sequence_to_sequence")
    last = {"sequence_output": "decoder_0", "encoder_output": "encoder_1"}
    before = model(make_inputs())
    for block in last.values():
        model.get_layer(block).feed_forward.output_dense.bias.assign([3.0] + [0.0] * 7)
    outputs = model(make_inputs())
    for name in last:
        np.testing.assert_allclose(np.mean(outputs[name], -1), 0, atol=1e-5)
        np.testing.assert_allclose(np.std(outputs[name], -1), 1, rtol=1e-3)
        assert np.abs(outputs[name] - before[name])[..., 0].min() > 0.5, name


def test_half_precision_is_near_and_its_logits_are_float32():
    whole, half = make(CASES["two tables"]), make(CASES["two tables"], dtype="mixed_bfloat16")
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
    assert NAMED["transformer_base"] == TransformerConfig()
    tiny = build_model(NAMED["transformer_tiny"], "sequence_to_sequence")
    assert tiny.count_params() == 2_605_056
    assert config_by_name("transformer", "transformer_tiny", vocabulary_size=50).num_layers == 4


def test_fresh_weights_are_those_of_the_authors_code():
    model = build_model(config_by_name("transformer"), "sequence_to_sequence")
    table = model.get_layer("embeddings").token_table
    assert np.std(table) == pytest.approx(256**-0.5 * 0.88, rel=0.01)  # cut at 2 deviations
    kernel = model.get_layer("decoder_1").feed_forward.intermediate.kernel
    assert np.abs(kernel).max() == pytest.approx(np.sqrt(6 / (256 + 1024)), rel=0.01)
