"""DisentangledAttention against DeBERTa v1 and v2/v3 of `transformers` on the same weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.parity.compare import check_gradients, copy_linear, near, padding
from tfnlp.functional.positions import distance_rows, log_buckets
from tfnlp.layers import DisentangledAttention, RelativePositionTable

torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
pytest.importorskip("transformers", reason="parity needs tfnlp[parity]")
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
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, 128])
def test_forward_and_gradients(name, length, masked):
    module, ours, theirs, named = PAIRS[name]()
    rng = np.random.default_rng(length)
    x = rng.normal(size=(2, length, D)).astype("float32")
    table = rng.normal(size=(ours.num_rows, D)).astype("float32")
    mask = padding(2, length, masked)
    tx, ttable, expected, weights = run_theirs(module, theirs, x, table, mask)

    # Before the output projection, which in transformers is another module.
    width = N * ours.key_dim
    ours.output_dense.set_weights([np.eye(width, dtype="float32"), np.zeros(width, "float32")])
    pull = (rng.normal(size=(2, length, width)) * mask[..., None]).astype("float32")
    sx, stable = tf.constant(x), tf.constant(table)
    with tf.GradientTape() as tape:
        tape.watch([sx, stable])
        found, scores = ours(
            sx,
            position_table=stable,
            attention_mask=mask[:, None, :],
            return_attention_scores=True,
        )
        loss = tf.reduce_sum(found * pull)
    near(found * mask[..., None], expected.detach().numpy() * mask[..., None], 1e-5)
    bias = np.where(mask, 0, -1e9)[:, None, None, :]
    real = mask[:, None, :, None]
    near(tf.nn.softmax(scores + bias) * real, weights.detach().numpy() * real, 1e-5)
    (expected * torch.tensor(pull)).sum().backward()
    named = [(variable, p.grad, transpose) for variable, p, transpose in named]
    named += [(sx, tx.grad, False), (stable, ttable.grad, False)]
    check_gradients(tape, loss, named)


def test_forward_at_512_beyond_the_maximum_distance():
    module, ours, theirs, _ = PAIRS["v3"]()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 512, D)).astype("float32")
    table = rng.normal(size=(ours.num_rows, D)).astype("float32")
    mask = padding(1, 512, True)
    _, _, expected, _ = run_theirs(module, theirs, x, table, mask)
    width = N * ours.key_dim
    ours.output_dense.set_weights([np.eye(width, dtype="float32"), np.zeros(width, "float32")])
    found = ours(x, position_table=table, attention_mask=mask[:, None, :])
    near(found * mask[..., None], expected.detach().numpy() * mask[..., None], 1e-5)


EVEN = [(256, 512), (8, 64), (6, 40), (32, 128), (2, 5), (64, 512)]
ODD = [(255, 512), (7, 20), (9, 64), (5, 40), (3, 9), (33, 128), (65, 512)]


@pytest.mark.parametrize("sizes", EVEN + ODD)
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


def test_whole_encoder_with_normalised_shared_table():
    """The table's layer norm and its sharing, in a whole DeBERTa v3 encoder's first block."""
    torch.manual_seed(0)
    config = DebertaV2Config(
        vocab_size=50,
        hidden_size=D,
        num_hidden_layers=1,
        num_attention_heads=N,
        intermediate_size=32,
        relative_attention=True,
        position_buckets=8,
        max_relative_positions=64,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        type_vocab_size=0,
        initializer_range=0.3,
    )
    encoder = v2.DebertaV2Encoder(config).eval()
    theirs = encoder.layer[0].attention
    table = RelativePositionTable(64, 8, normalize=True)
    table.build((None, D))
    table.set_weights(
        [
            encoder.rel_embeddings.weight.detach().numpy(),
            *(p.detach().numpy() for p in encoder.LayerNorm.parameters()),
        ]
    )
    # Keras sorts a layer's own weights before its sublayers'.
    assert table.weights[0] is table.table
    ours = DisentangledAttention(N, D // N, max_distance=64, num_buckets=8, share_att_key=True)
    x = np.random.default_rng(0).normal(size=(2, 20, D)).astype("float32")
    rows = table(x)
    ours(x, position_table=rows)
    attention = theirs.self
    copy_linear(
        [
            (ours.query, attention.query_proj),
            (ours.key, attention.key_proj),
            (ours.value, attention.value_proj),
            (ours.output_dense, theirs.output.dense),
        ]
    )
    norm = keras.layers.LayerNormalization(epsilon=config.layer_norm_eps)
    found = norm(x + ours(x, position_table=rows))
    mask = torch.ones(2, 1, 20, 20, dtype=torch.bool)
    expected, _ = theirs(
        torch.tensor(x),
        mask,
        relative_pos=encoder.get_rel_pos(torch.tensor(x)),
        rel_embeddings=encoder.get_rel_embedding(),
    )
    near(found, expected.detach().numpy(), 1e-5)
