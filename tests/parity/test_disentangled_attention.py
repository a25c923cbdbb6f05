"""DisentangledAttention against DeBERTa v1 and v2/v3 of `transformers` on the same weights."""

import numpy as np
import pytest
import tensorflow as tf

from tests.parity.compare import check_gradients, copy_linear, near, padding
from tfnlp.functional.positions import distance_rows, log_buckets
from tfnlp.layers import DisentangledAttention

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
pytest.importorskip("transformers", reason="parity needs .[parity]")
from transformers import DebertaConfig, DebertaV2Config  # noqa: E402
from transformers.models.deberta import modeling_deberta as v1  # noqa: E402
from transformers.models.deberta_v2 import modeling_deberta_v2 as v2  # noqa: E402

D, N = 24, 3


def config_of(cls, **fields):
    return cls(
        hidden_size=D,
        num_attention_heads=N,
        relative_attention=True,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **fields,
    )


def randomised(module):
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return module.eval()


def v1_pair(terms, max_distance):
    theirs = randomised(
        v1.DisentangledSelfAttention(
            config_of(DebertaConfig, pos_att_type=terms, max_relative_positions=max_distance)
        )
    )
    ours = DisentangledAttention(
        N, D // N, terms=("c2c", *terms), max_distance=max_distance, joint_projection=True
    )
    ours.build((None, None, D), position_table_shape=(2 * max_distance, D))
    pairs = [(ours.joint, theirs.in_proj)]
    if "c2p" in terms:
        pairs.append((ours.position_key, theirs.pos_proj))
    if "p2c" in terms:
        pairs.append((ours.position_query, theirs.pos_q_proj))
    named = copy_linear(pairs)
    for mine, other in ((ours.query_bias, theirs.q_bias), (ours.value_bias, theirs.v_bias)):
        mine.assign(other.detach().numpy())
        named.append((mine, other, False))
    return ours, theirs, named


def v2_pair(terms, max_distance, num_buckets, share):
    theirs = randomised(
        v2.DisentangledSelfAttention(
            config_of(
                DebertaV2Config,
                pos_att_type=terms,
                max_relative_positions=max_distance,
                position_buckets=num_buckets or -1,
                share_att_key=share,
            )
        )
    )
    ours = DisentangledAttention(
        N,
        D // N,
        terms=("c2c", *terms),
        max_distance=max_distance,
        num_buckets=num_buckets,
        share_att_key=share,
    )
    ours.build((None, None, D), position_table_shape=(2 * (num_buckets or max_distance), D))
    pairs = [
        (ours.query, theirs.query_proj),
        (ours.key, theirs.key_proj),
        (ours.value, theirs.value_proj),
    ]
    if not share and "c2p" in terms:
        pairs.append((ours.position_key, theirs.pos_key_proj))
    if not share and "p2c" in terms:
        pairs.append((ours.position_query, theirs.pos_query_proj))
    return ours, theirs, copy_linear(pairs)


def run_theirs(module, theirs, x, table, mask):
    x = torch.tensor(x, requires_grad=True)
    table = torch.tensor(table, requires_grad=True)
    both = torch.tensor(mask)[:, None, None, :] & torch.tensor(mask)[:, None, :, None]
    length = x.shape[1]
    if module is v1:
        relative = v1.build_relative_position(x, x)
    else:
        relative = v2.build_relative_position(
            x, x, bucket_size=theirs.position_buckets, max_position=theirs.max_relative_positions
        )
    output, weights = theirs(
        x, both, output_attentions=True, relative_pos=relative, rel_embeddings=table
    )
    assert weights.shape[-1] == length
    return x, table, output, weights


PAIRS = {
    "v1": lambda: (v1, *v1_pair(["c2p", "p2c"], 16)),
    "v1 c2p": lambda: (v1, *v1_pair(["c2p"], 4)),
    "v1 p2c": lambda: (v1, *v1_pair(["p2c"], 4)),
    "v2 own": lambda: (v2, *v2_pair(["c2p", "p2c"], 16, None, False)),
    "v3": lambda: (v2, *v2_pair(["p2c", "c2p"], 64, 8, True)),
    # Of an odd number of buckets, which have rows for distances up to 47.
    "v3 own": lambda: (v2, *v2_pair(["p2c", "c2p"], 20, 7, False)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_forward_and_gradients(name):
    module, ours, theirs, parameters = PAIRS[name]()
    # Before the output projection, which in transformers is another module.
    width = N * ours.key_dim
    ours.output_dense.set_weights([np.eye(width, dtype="float32"), np.zeros(width, "float32")])
    for length, masked in ((1, False), (2, True), (7, True), (128, False), (128, True)):
        rng = np.random.default_rng(length)
        x = rng.normal(size=(2, length, D)).astype("float32")
        table = rng.normal(size=(ours.num_rows, D)).astype("float32")
        mask = padding(2, length, masked)
        theirs.zero_grad()
        tx, ttable, expected, weights = run_theirs(module, theirs, x, table, mask)
        pull = (rng.normal(size=(2, length, width)) * mask[..., None]).astype("float32")
        sx, stable = tf.constant(x), tf.constant(table)
        arguments = {"attention_mask": mask[:, None, :], "return_attention_scores": True}
        with tf.GradientTape() as tape:
            tape.watch([sx, stable])
            found, scores = ours(sx, position_table=stable, **arguments)
            loss = tf.reduce_sum(found * pull)
        near(found * mask[..., None], expected.detach().numpy() * mask[..., None], 1e-5)
        bias = np.where(mask, 0, -1e9)[:, None, None, :]
        real = mask[:, None, :, None]
        near(tf.nn.softmax(scores + bias) * real, weights.detach().numpy() * real, 1e-5)
        (expected * torch.tensor(pull)).sum().backward()
        named = [(variable, p.grad, transpose) for variable, p, transpose in parameters]
        named += [(sx, tx.grad, False), (stable, ttable.grad, False)]
        check_gradients(tape, loss, named)


@pytest.mark.parametrize("sizes", [(256, 512), (6, 40), (2, 5), (255, 512), (7, 20), (3, 9)])
def test_rows_are_the_reference_s_for_every_distance(sizes):
    num_buckets, max_distance = sizes
    rows = distance_rows(max_distance, num_buckets)
    reach = len(rows) // 2
    assert num_buckets % 2 or reach == max_distance
    distances = np.arange(-3 * reach, 3 * reach)
    theirs = v2.make_log_bucket_position(torch.tensor(distances), num_buckets, max_distance)
    near(log_buckets(distances, num_buckets, max_distance), theirs.long().numpy(), 0)
    span = num_buckets
    expected = (theirs.long() + span).clamp(0, 2 * span - 1).numpy()
    near(rows[np.clip(distances, -reach, reach) + reach], expected, 0)
