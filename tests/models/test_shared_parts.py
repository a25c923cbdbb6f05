"""Blocks give their queries, keys and values beside their scores."""

import numpy as np
import pytest

from tests.models.small import sizes
from tfnlp.models import (
    AlbertConfig,
    BertConfig,
    DebertaV2Config,
    Gpt2Config,
    TransformerXLConfig,
    XLNetConfig,
    build_model,
)

SIZES = sizes(initializer_range=0.5)
CONFIGS = [
    BertConfig(max_length=16, **SIZES),
    AlbertConfig(max_length=16, embedding_dim=4, **SIZES),
    DebertaV2Config(max_length=16, terms=("c2c",), convolution_size=3, **SIZES),
    XLNetConfig(**SIZES),
    TransformerXLConfig(**SIZES, cutoffs=(9,)),
    Gpt2Config(max_length=16, **SIZES),
]
ASKED = {"hidden_states": True, "attention_scores": True, "attention_projections": True}


def by_head(x):
    """(B, L, N * H) to (B, N, L, H)."""
    return x.reshape(*x.shape[:2], SIZES["num_heads"], -1).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)
def test_queries_keys_and_values_are_those_of_each_block(config, random_inputs):
    head = "masked_lm" if type(config) is DebertaV2Config else None
    model = build_model(config, head, **ASKED)
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=w.shape, scale=0.4) for w in model.weights])
    inputs = random_inputs(2, 5, 20)
    found = model(inputs)
    plain = build_model(config, head)
    assert not {"queries", "keys", "values"} & plain.output.keys()
    plain.set_weights(model.get_weights())
    np.testing.assert_allclose(
        plain(inputs)["sequence_output"], found["sequence_output"], atol=1e-5
    )
    for i in range(2):
        q, k, v, scores = (
            found[name][i].numpy() for name in ("queries", "keys", "values", "attention_scores")
        )
        assert [x.shape for x in (q, k, v)] == [(2, 2, 5, 4)] * 3
        assert model.output["values"][i].shape == (None, 2, None, 4)
        if isinstance(config, XLNetConfig | TransformerXLConfig):
            attention = model.get_layer(f"encoder_{i}").attention
            states = found["hidden_states"][i].numpy()
            for name, x in (("query", q), ("key", k), ("value", v)):
                due = by_head(states @ getattr(attention, name).kernel.numpy())
                np.testing.assert_allclose(x, due, atol=1e-5)
        else:  # without relative positions the scores are the scaled products of both
            np.testing.assert_allclose(scores, q @ k.swapaxes(2, 3) / 2, atol=1e-4)
