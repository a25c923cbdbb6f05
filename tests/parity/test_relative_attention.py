"""RelativeAttention against numbers recorded from Transformer-XL in transformers 4.35."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests.parity.compare import check_gradients, near
from tests.parity.record_transformer_xl import CASES, CLAMP, H, N, case_inputs
from tfnlp.layers import RelativeAttention

RECORDED = pathlib.Path(__file__).parent / "recorded" / "transformer_xl.npz"


@pytest.mark.parametrize(("causal", "block_size"), [(False, 5), (True, None)])
@pytest.mark.parametrize("case", CASES)
def test_output_and_gradients(case, causal, block_size):
    """By an attention mask alone, or by the cheaper causal path; whole or in blocks of keys."""
    if block_size:
        block_size = max(block_size, case[0] // 4 + 1)  # not a divisor of the length
    weights, x, memory, seen, pull = case_inputs(*case)
    layer = RelativeAttention(N, H, clamp_length=CLAMP, block_size=block_size)
    layer.build(x.shape)
    query, key, value = np.split(weights["qkv"], 3, axis=1)
    parts = {
        "by_position": (layer.position.kernel, weights["position"]),
        "by_output": (layer.output_dense.kernel, weights["output"]),
        "by_content_bias": (layer.content_bias, weights["content_bias"]),
        "by_position_bias": (layer.position_bias, weights["position_bias"]),
        "by_query": (layer.query.kernel, query),
        "by_key": (layer.key.kernel, key),
        "by_value": (layer.value.kernel, value),
    }
    for variable, value in parts.values():
        variable.assign(value)
    tensor = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        found = layer(tensor, memory=memory, attention_mask=seen, use_causal_mask=causal)
        loss = tf.reduce_sum(found * pull)
    name = "_".join(str(int(part)) for part in case)
    with np.load(RECORDED) as recorded:
        near(found, recorded[f"{name}/output"], 1e-5)
        expected = {part: recorded[f"{name}/{part}"] for part in list(parts)[:4]}
        by_query, by_key, by_value = np.split(recorded[f"{name}/by_qkv"], 3, axis=1)
        expected |= {"by_query": by_query, "by_key": by_key, "by_value": by_value}
        named = [(variable, expected[part], False) for part, (variable, _) in parts.items()]
        named.append((tensor, recorded[f"{name}/by_input"], False))
    check_gradients(tape, loss, named)
