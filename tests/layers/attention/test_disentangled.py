"""DeBERTa's attention against loops in NumPy."""

import numpy as np
import pytest

from tests.layers import witnesses
from tests.layers.witnesses import inputs, near, randomise
from tfnlp.layers import (
    DisentangledAttention,
    RelativePositionTable,
)

ALL_TERMS = ("c2c", "c2p", "p2c", "p2p")
SUBSETS = [
    ("c2c",),
    ("c2p",),
    ("p2c",),
    ("p2p",),
    ("c2c", "p2p"),
    ("c2c", "c2p", "p2c"),
    ALL_TERMS,
]


@pytest.mark.parametrize("terms", SUBSETS, ids="+".join)
@pytest.mark.parametrize("buckets", [None, 4])
@pytest.mark.parametrize("share", [False, True])
def test_disentangled_terms(terms, buckets, share):
    x, mask = inputs(2, 17, 12)
    layer = DisentangledAttention(
        3, 4, terms=terms, max_distance=7, num_buckets=buckets, share_att_key=share
    )
    layer.build(x.shape)
    randomise(layer)
    table = np.zeros((2, 12)) if terms == ("c2c",) else layer.own_table.table.numpy()
    found = layer(x, attention_mask=mask, return_attention_scores=True)
    for a, b in zip(found, witnesses.disentangled(layer, x, table, mask), strict=True):
        near(a, b)


@pytest.mark.parametrize("length", [1, 2, 7, 40])
@pytest.mark.parametrize("masked", [False, True])
def test_disentangled_lengths(length, masked):
    x, mask = inputs(2, length, 12, masked=masked)
    layer = DisentangledAttention(3, 4, max_distance=16, num_buckets=6)
    layer.build(x.shape)
    randomise(layer)
    found = layer(x, attention_mask=mask, return_attention_scores=True)
    expected = witnesses.disentangled(layer, x, layer.own_table.table.numpy(), mask)
    for a, b in zip(found, expected, strict=True):
        near(a, b)


def test_disentangled_joint_projection_is_three_projections_head_by_head():
    x, mask = inputs(2, 9, 12)
    joint = DisentangledAttention(3, 4, max_distance=5, joint_projection=True)
    table = inputs(1, 10, 12, seed=1)[0][0]
    joint.build(x.shape, position_table_shape=table.shape)
    randomise(joint)
    assert joint.position_key.bias is None and joint.position_query.bias is not None
    apart = DisentangledAttention(3, 4, max_distance=5)
    apart.build(x.shape, position_table_shape=table.shape)
    kernel = joint.joint.kernel.numpy().reshape(12, 3, 3, 4)  # (D, N, q k v, H)
    zeros = np.zeros(12)
    biases = (joint.query_bias.numpy(), zeros, joint.value_bias.numpy())
    for i, (name, bias) in enumerate(zip(("query", "key", "value"), biases, strict=True)):
        getattr(apart, name).set_weights([kernel[:, :, i].reshape(12, 12), bias])
    apart.position_key.set_weights([joint.position_key.kernel.numpy(), zeros])
    apart.position_query.set_weights(joint.position_query.get_weights())
    apart.output_dense.set_weights(joint.output_dense.get_weights())
    expected = apart(x, position_table=table, attention_mask=mask)
    near(joint(x, position_table=table, attention_mask=mask), expected)
    # Another input for the queries takes the kernel apart.
    other = inputs(2, 9, 12, seed=4)[0]
    near(joint(other, x, position_table=table), apart(other, x, position_table=table))


def test_disentangled_own_table_is_normalised_on_request():
    x, mask = inputs(2, 9, 12)
    layer = DisentangledAttention(3, 4, max_distance=5, normalize_positions=True)
    layer.build(x.shape)
    randomise(layer)
    norm = layer.own_table.norm
    table = layer.own_table.table.numpy()
    table = (table - table.mean(1, keepdims=True)) / np.sqrt(
        table.var(1, keepdims=True) + 1e-7
    ) * norm.gamma.numpy() + norm.beta.numpy()
    found = layer(x, attention_mask=mask)
    near(found, witnesses.disentangled(layer, x, table, mask)[0])
    shared = RelativePositionTable(5, normalize=True)
    shared.build(x.shape)
    shared.set_weights(layer.own_table.get_weights())
    near(shared(x), table)
