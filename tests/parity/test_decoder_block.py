"""DecoderBlock and EncoderBlock against torch's transformer layers, on the same weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.parity.compare import check_gradients, near, padding
from tfnlp.layers import DecoderBlock

torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")

D, N, F = 24, 3, 40


def copy(block, theirs):
    """Gives a block torch's weights; returns (variable, parameter, part, transpose)."""
    named = []

    def assign(variable, parameter, part=None, transpose=False):
        value = parameter.detach().numpy()
        value = value if part is None else np.split(value, 3)[part]
        variable.assign(value.T if transpose else value)
        named.append((variable, parameter, part, transpose))

    pairs = ((block.attention, theirs.self_attn), (block.cross_attention, theirs.multihead_attn))
    for ours, attention in pairs:
        for i, dense in enumerate((ours.query, ours.key, ours.value)):
            assign(dense.kernel, attention.in_proj_weight, i, True)
            assign(dense.bias, attention.in_proj_bias, i)
        assign(ours.output_dense.kernel, attention.out_proj.weight, None, True)
        assign(ours.output_dense.bias, attention.out_proj.bias)
    feed_forward = block.feed_forward
    for ours, linear in (
        (feed_forward.intermediate, theirs.linear1),
        (feed_forward.output_dense, theirs.linear2),
    ):
        assign(ours.kernel, linear.weight, None, True)
        assign(ours.bias, linear.bias)
    norms = (theirs.norm1, theirs.norm2, theirs.norm3)
    for ours, norm in zip(block.norms.values(), norms, strict=True):
        assign(ours.gamma, norm.weight)
        assign(ours.beta, norm.bias)
    return named


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize(
    ("length", "source", "masked"), [(1, 1, False), (7, 5, True), (64, 9, True)]
)
def test_decoder_block(length, source, masked, norm_first):
    torch.manual_seed(0)
    theirs = torch.nn.TransformerDecoderLayer(
        D, N, F, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    block = DecoderBlock(N, F, norm_first=norm_first)
    block.build((None, None, D), (None, None, D))
    named = copy(block, theirs)
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(2, n, D)).astype("float32") for n in (length, source))
    mask, source_mask = padding(2, length, masked), padding(2, source, masked, seed=1)
    expected = theirs(
        torch.tensor(x),
        torch.tensor(y),
        tgt_mask=torch.triu(torch.ones(length, length, dtype=torch.bool), 1),
        tgt_key_padding_mask=torch.tensor(~mask),
        memory_key_padding_mask=torch.tensor(~source_mask),
    )
    real = mask[..., None]
    pull = (rng.normal(size=x.shape) * real).astype("float32")
    with tf.GradientTape() as tape:
        found, scores, cross = block(
            x,
            y,
            attention_mask=mask[:, None, :],
            encoder_mask=source_mask[:, None, :],
            return_attention_scores=True,
        )
        loss = tf.reduce_sum(found * pull)
    near(found * real, expected.detach().numpy() * real, 1e-5)
    assert scores.shape == (2, N, length, length) and cross.shape == (2, N, length, source)
    (expected * torch.tensor(pull)).sum().backward()
    gradients = []
    for variable, parameter, part, transpose in named:
        value = parameter.grad.numpy()
        gradients.append(
            (variable, value if part is None else np.split(value, 3)[part], transpose)
        )
    check_gradients(tape, loss, gradients)


def test_in_a_model_that_is_saved(tmp_path):
    target, source = keras.Input((None, D)), keras.Input((None, D))
    model = keras.Model([target, source], DecoderBlock(N, F)(target, source))
    model.save(tmp_path / "m.keras")
    x = np.random.default_rng(0).normal(size=(2, 5, D)).astype("float32")
    found = keras.models.load_model(tmp_path / "m.keras")([x, x[:, :3]])
    np.testing.assert_array_equal(found, model([x, x[:, :3]]))
    # Causal: a later position changes nothing before it.
    changed = x.copy()
    changed[:, 4] += 1
    np.testing.assert_allclose(model([changed, x[:, :3]])[:, :4], found[:, :4], atol=1e-6)
