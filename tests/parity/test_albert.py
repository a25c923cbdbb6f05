"""FactorizedEmbedding and SharedEncoder against ALBERT of `transformers`."""

import numpy as np
import pytest
import tensorflow as tf

from tests.parity.compare import check_gradients, copy_linear, near, padding
from tfnlp.layers import FactorizedEmbedding, SharedEncoder

torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs tfnlp[parity]")

V, E, D, N, F = 40, 8, 24, 3, 32


def reference(cls, **fields):
    torch.manual_seed(0)
    config = transformers.AlbertConfig(
        vocab_size=V,
        embedding_size=E,
        hidden_size=D,
        num_attention_heads=N,
        intermediate_size=F,
        hidden_act="gelu",
        initializer_range=0.3,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
        **fields,
    )
    return cls(config).eval()


def copy_block(block, theirs):
    """Weights of an AlbertLayer for an EncoderBlock; named as `copy_linear` names them."""
    attention = theirs.attention
    named = copy_linear(
        [
            (block.attention.query, attention.query),
            (block.attention.key, attention.key),
            (block.attention.value, attention.value),
            (block.attention.output_dense, attention.dense),
            (block.feed_forward.intermediate, theirs.ffn),
            (block.feed_forward.output_dense, theirs.ffn_output),
        ]
    )
    norms = (
        (block.attention_norm, attention.LayerNorm),
        (block.feed_forward_norm, theirs.full_layer_layer_norm),
    )
    for ours, norm in norms:
        for variable, parameter in ((ours.gamma, norm.weight), (ours.beta, norm.bias)):
            variable.assign(parameter.detach().numpy())
            named.append((variable, parameter, False))
    return named


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, 128])
def test_shared_blocks(length, masked, groups):
    model = reference(transformers.AlbertModel, num_hidden_layers=4, num_hidden_groups=groups)
    encoder = SharedEncoder(4, N, F, num_groups=groups)
    encoder.build((None, None, D))
    assert len(encoder.blocks) == groups
    named = []
    for block, group in zip(encoder.blocks, model.encoder.albert_layer_groups, strict=True):
        named += copy_block(block, group.albert_layers[0])
    rng = np.random.default_rng(0)
    embedded = rng.normal(size=(2, length, E)).astype("float32")
    mask = padding(2, length, masked)
    # Both start from the E-wide embeddings; the up-projection is FactorizedEmbedding's.
    factorized = FactorizedEmbedding(V, E, D)
    factorized.build((None, None))
    named += copy_linear([(factorized.projection, model.encoder.embedding_hidden_mapping_in)])
    normed = model.embeddings(inputs_embeds=torch.tensor(embedded))
    expected = model(
        inputs_embeds=torch.tensor(embedded),
        attention_mask=torch.tensor(mask).long(),
        output_hidden_states=True,
        output_attentions=True,
    )
    real = mask[..., None]
    pull = (rng.normal(size=(2, length, D)) * real).astype("float32")
    with tf.GradientTape() as tape:
        found, states, scores = encoder(
            factorized.projection(normed.detach().numpy()),
            attention_mask=mask[:, None, :],
            return_hidden_states=True,
            return_attention_scores=True,
        )
        loss = tf.reduce_sum(found * pull)
    for a, b in zip(states, expected.hidden_states, strict=True):
        near(a * real, b.detach().numpy() * real, 1e-5)
    bias = np.where(mask, 0, -1e9)[:, None, None]
    for a, b in zip(scores, expected.attentions, strict=True):
        near(tf.nn.softmax(a + bias), b.detach().numpy(), 1e-5)
    (expected.last_hidden_state * torch.tensor(pull)).sum().backward()
    check_gradients(tape, loss, [(v, p.grad, t) for v, p, t in named])


def test_factorized_embedding_and_its_tied_output():
    model = reference(transformers.AlbertForMaskedLM, num_hidden_layers=1)
    layer = FactorizedEmbedding(V, E, D, use_output_bias=True)
    ids = np.random.default_rng(0).integers(1, V, (2, 7))
    layer(ids)
    table = model.albert.embeddings.word_embeddings.weight
    head = model.predictions
    with torch.no_grad():
        head.bias.copy_(torch.randn(V))
    layer.token_table.assign(table.detach().numpy())
    layer.output_bias.assign(head.bias.detach().numpy())
    mapping = model.albert.encoder.embedding_hidden_mapping_in
    copy_linear([(layer.projection, mapping)])
    expected = mapping(model.albert.embeddings.word_embeddings(torch.tensor(ids)))
    near(layer(ids), expected.detach().numpy(), 1e-6)

    states = np.random.default_rng(1).normal(size=(2, 7, D)).astype("float32")
    narrow = head.LayerNorm(head.activation(head.dense(torch.tensor(states)))).detach()
    logits = head(torch.tensor(states))
    x = tf.constant(narrow.numpy())
    with tf.GradientTape() as tape:
        found = layer(x, reverse=True)
        loss = tf.reduce_sum(found**2)
    near(found, logits.detach().numpy(), 1e-5)
    model.zero_grad()
    (logits**2).sum().backward()
    named = [(layer.token_table, table.grad, False), (layer.output_bias, head.bias.grad, False)]
    check_gradients(tape, loss, named)
