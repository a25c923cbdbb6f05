"""What each layer does with the mask of `Embedding(mask_zero=True)`: padding leaves no trace."""

import pathlib
import re

import keras
import numpy as np
import pytest

from tfnlp import layers

IDS = np.array([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]])
MEMORY = np.random.default_rng(1).normal(size=(1, 3, 8)).astype("float32")


def relative_block(**options):
    return layers.EncoderBlock(2, 16, attention=layers.RelativeAttention(2, 4), **options)


# Name: a layer, and how it is called on states (B, L, 8) with a mask.
ON_STATES = {
    "relative": (layers.RelativeAttention(2, 4), lambda f, x: f(x)),
    "disentangled": (layers.DisentangledAttention(2, 4, max_distance=3), lambda f, x: f(x)),
    "two streams with memory": (
        layers.TwoStreamAttention(2, 4),
        lambda f, x: f(x, memory=np.repeat(MEMORY, x.shape[0], 0)),
    ),
    "block and a mask": (
        layers.EncoderBlock(2, 16),
        lambda f, x: f(x, attention_mask=np.ones((1, 1, x.shape[1]), bool)),
    ),
    "block with memory": (
        relative_block(),
        lambda f, x: f(x, attention_arguments={"memory": np.repeat(MEMORY, x.shape[0], 0)}),
    ),
    "block of other values": (layers.EncoderBlock(2, 16), lambda f, x: f(x, value=x)),
    "fusion": (layers.KnowledgeFusion(16), lambda f, x: f(x, 2 * x)[1]),
    "knowledge block": (
        layers.KnowledgeBlock(2, 16, num_entity_heads=2),
        lambda f, x: f(x, 2 * x)[0],
    ),
    "entities of a block": (
        layers.KnowledgeBlock(2, 16, num_entity_heads=4, norm_first=True),
        lambda f, x: f(x, 0.5 + 0 * x, return_attention_scores=True)[1],
    ),
    "convolution": (layers.ConvolutionBlock(3), lambda f, x: f(x, x)),
    "feed-forward": (layers.FeedForward(16), lambda f, x: f(x)),
    "norm": (layers.LayerNormalization(), lambda f, x: f(x)),
    "sinusoids": (layers.SinusoidalPositionEncoding(), lambda f, x: f(x)),
    "positions": (layers.LearnedPositionEncoding(6), lambda f, x: f(x)),
    "projected LSTM": (layers.ProjectedLSTM(8, 4, clip=3.0), lambda f, x: f(x)),
    "projected LSTM backwards": (layers.ProjectedLSTM(8, 4, go_backwards=True), lambda f, x: f(x)),
    "adaptive softmax": (layers.AdaptiveSoftmax(20, (5,)), lambda f, x: f(x)),
}


@pytest.mark.parametrize("name", ON_STATES)
def test_pooled_states_do_not_know_of_padding(name):
    layer, call = ON_STATES[name]
    embed = keras.layers.Embedding(10, 8, mask_zero=True, embeddings_initializer="normal")
    pool = keras.layers.GlobalAveragePooling1D()
    found = np.asarray(pool(call(layer, embed(IDS))))
    for row, ids in zip(found, IDS, strict=True):
        real = embed(ids[None, ids > 0])
        expected = np.asarray(call(layer, real)).mean(1)
        np.testing.assert_allclose(row, expected[0], atol=1e-5)


def test_images_are_masked_beside_an_attention_mask():
    image = np.random.default_rng(0).normal(size=(1, 2, 3, 4)).astype("float32")
    mask = np.array([[[True, True, False], [True, False, True]]])
    layer = layers.QuadraticPositionAttention(4, 5)
    found = layer(image, mask=mask, attention_mask=np.ones((6, 6), bool))
    np.testing.assert_allclose(found, layer(image, mask=mask), atol=1e-6)
    masked = keras.layers.Masking()(image * mask[..., None])
    both = layer(masked, attention_mask=np.ones((6, 6), bool))
    np.testing.assert_allclose(both, layer(masked), atol=1e-6)
    assert np.abs(both - layer(masked.numpy())).max() > 1e-3


def test_a_query_stream_with_a_mapping_has_its_own_mask_or_none():
    embed = keras.layers.Embedding(10, 8, mask_zero=True)
    x, mapping = embed(IDS), np.eye(5, dtype="float32")[np.array([[0, 2], [3, 1]])]
    plain, masked = np.ones((2, 2, 8), "float32"), embed(np.array([[1, 0], [1, 1]]))
    for layer in (layers.TwoStreamAttention(2, 4), layers.TwoStreamBlock(2, 16)):
        content, query = layer(x, plain, target_mapping=mapping)
        np.testing.assert_array_equal(content._keras_mask, IDS > 0)
        assert getattr(query, "_keras_mask", None) is None
        _, query = layer(x, masked, target_mapping=mapping)
        np.testing.assert_array_equal(query._keras_mask, [[True, False], [True, True]])


EMBEDDINGS = {
    "text": lambda **kw: layers.TextEmbedding(10, 8, 6, embedding_dim=4, **kw),
    "two streams": lambda **kw: layers.TwoStreamEmbedding(10, 8, **kw),
    "factorized": lambda **kw: layers.FactorizedEmbedding(10, 4, 8, **kw),
    "adaptive": lambda **kw: layers.AdaptiveEmbedding(10, 8, (4,), **kw),
}


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings_make_a_mask_of_the_id_that_pads(name):
    make = EMBEDDINGS[name]
    ids = keras.Input((None,), dtype="int32")
    embed = make(pad_token_id=7)
    model = keras.Model(ids, keras.layers.GlobalAveragePooling1D()(embed(ids)))
    assert embed(ids)._keras_mask.shape == (None, None)
    padded, real = np.array([[1, 2, 7, 7], [3, 4, 5, 6]]), np.array([[1, 2]])
    np.testing.assert_allclose(model(padded)[:1], model(real), atol=1e-6)
    assert make().from_config(embed.get_config()).pad_token_id == 7
    assert getattr(make()(padded), "_keras_mask", None) is None
    assert np.abs(np.asarray(embed(padded)).mean(1)[0] - model(real)[0]).max() > 1e-4
    if name in ("text", "two streams", "factorized"):
        states = np.ones((2, 4 if name != "two streams" else 8), "float32")
        logits = embed(states, reverse=True)
        assert logits.shape == (2, 10) and getattr(logits, "_keras_mask", None) is None


def test_the_model_of_the_readme_does_not_see_padding():
    readme = pathlib.Path(__file__).parents[2] / "README.md"
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text("utf-8"), re.DOTALL)
    names = {}
    exec(next(b for b in blocks if "TextEmbedding(" in b), names)
    model = names["model"]
    real = np.random.default_rng(0).integers(1, 30000, (2, 6))
    padded = np.pad(real, ((0, 0), (0, 5)))
    expected = model(real)
    np.testing.assert_allclose(model(padded), expected, atol=1e-5)
    # A token in place of the padding is seen.
    assert np.abs(model(np.where(padded, padded, 17)) - expected).max() > 1e-3


# Name: a layer, and its outputs of states in a functional model, each (B, L, D).
OF_SEVERAL_OUTPUTS = {
    "attention": (
        lambda: layers.MultiHeadAttention(2, 4),
        lambda f, x: f(x, return_attention_scores=True, return_projections=True)[:1],
    ),
    "scores": (
        lambda: layers.ScoreAttention("general"),
        lambda f, x: f(x, x, return_attention_scores=True)[:1],
    ),
    "two streams": (lambda: layers.TwoStreamAttention(2, 4), lambda f, x: f(x, 0.5 - x)),
    "block": (
        lambda: layers.EncoderBlock(2, 16),
        lambda f, x: f(x, return_attention_scores=True, return_projections=True)[:1],
    ),
    "two-stream block and scores": (
        lambda: layers.TwoStreamBlock(2, 16),
        lambda f, x: f(x, 0.5 - x, return_attention_scores=True)[0],
    ),
    "decoder block": (
        lambda: layers.DecoderBlock(2, 16),
        lambda f, x: f(x, x, return_attention_scores=True)[:1],
    ),
    "shared encoder": (
        lambda: layers.SharedEncoder(2, 2, 16),
        lambda f, x: keras.tree.flatten(f(x, return_hidden_states=True)),
    ),
}


@pytest.mark.parametrize("name", OF_SEVERAL_OUTPUTS)
def test_every_output_of_states_has_its_mask_in_a_functional_model(name):
    make, call = OF_SEVERAL_OUTPUTS[name]
    ids, layer = keras.Input((None,), dtype="int32"), make()
    initializer = keras.initializers.RandomNormal(stddev=1.0, seed=0)
    x = keras.layers.Embedding(10, 8, mask_zero=True, embeddings_initializer=initializer)(ids)
    states = call(layer, x)
    masks = [y._keras_mask for y in states]
    # By the symbolic masks, as a layer is given them, not by those that tensors carry.
    weights = [keras.ops.cast(m, "float32")[..., None] for m in masks]
    pooled = [
        keras.ops.sum(y * w, 1) / keras.ops.sum(w, 1) for y, w in zip(states, weights, strict=True)
    ]
    carried = [keras.layers.GlobalAveragePooling1D()(y) for y in states]
    model = keras.Model(ids, [*pooled, *carried, *masks])
    found, expected = model(IDS), model(IDS[:1, :3])
    count = len(states)
    for padded, real in zip(found[: 2 * count], expected[: 2 * count], strict=True):
        np.testing.assert_allclose(padded[:1], real, atol=1e-5)
    for mask in found[2 * count :]:
        np.testing.assert_array_equal(mask, IDS > 0)
    assert layer.compute_mask(x, masks[0]) is masks[0]


def test_a_recomputed_block_keeps_the_mask_of_its_query_stream():
    embed = keras.layers.Embedding(10, 8, mask_zero=True)
    x, block = embed(IDS), layers.TwoStreamBlock(2, 16)
    block.recompute = True
    content, query = block(x, 0.5 - x, training=True)
    for y in (content, query):
        np.testing.assert_array_equal(y._keras_mask, IDS > 0)
