"""Run by test_jax_backend in a process of its own: every layer on Keras' JAX backend."""

import jax
import keras
import numpy as np
from keras import ops

from tfnlp import layers

assert keras.backend.backend() == "jax"
rng = np.random.default_rng(0)
x = rng.normal(size=(2, 10, 16)).astype("float32")
mask = rng.random((2, 10, 10)) < 0.8
image = rng.normal(size=(2, 4, 5, 3)).astype("float32")
ids = rng.integers(0, 30, (2, 10))

PAIRS = [  # whole and in blocks of keys
    (layers.MultiHeadAttention, {}),
    (layers.RelativeAttention, {"clamp_length": 6}),
    (layers.DisentangledAttention, {"max_distance": 8, "num_buckets": 4}),
    (layers.DisentangledAttention, {"terms": layers.ATTENTION_TERMS, "max_distance": 4}),
    (layers.TwoStreamAttention, {}),
]
for cls, arguments in PAIRS:
    found = []
    further = {"segment_mask": ~mask} if cls is layers.TwoStreamAttention else {}
    for block_size in (None, 3):
        layer = cls(4, 4, block_size=block_size, **arguments)
        layer.build(x.shape)
        weights = [
            0.3 * np.random.default_rng(i).normal(size=w.shape).astype("float32")
            for i, w in enumerate(layer.weights)
        ]
        layer.set_weights(weights)
        values = [v.value for v in layer.trainable_variables]

        def loss(values, inputs, layer=layer, further=further):
            output, _ = layer.stateless_call(values, [], inputs, attention_mask=mask, **further)
            return ops.sum(output**2)

        value, gradients = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(values, x)
        found.append([value, *gradients[0], gradients[1]])
    largest = max(np.abs(a).max() for a in found[0][1:])
    for a, b in zip(*found, strict=True):
        # The gradient of a key's bias is rounding alone.
        scale = max(np.abs(a).max(), 1e-2 * largest)
        assert np.abs(a - b).max() <= 1e-4 * scale, (cls, np.abs(a - b).max(), scale)
        assert np.isfinite(a).all()

two_streams = layers.TwoStreamAttention(4, 4)
order = np.stack([rng.permutation(10) for _ in range(2)])
content_mask, query_mask = layers.permutation_masks(order)
outputs = two_streams(
    x, x, attention_mask=content_mask, query_attention_mask=query_mask, segment_mask=mask
)
assert all(np.isfinite(output).all() for output in outputs)
masked = layers.TextEmbedding(30, 16, 12, pad_token_id=0)(ids)
h, g = layers.TwoStreamBlock(4, 32)(masked, x)
for output in (h, g):
    pooled = keras.layers.GlobalAveragePooling1D()(output)
    real = (ids != 0)[..., None]
    due = (np.asarray(output) * real).sum(1) / real.sum(1)
    assert np.abs(pooled - due).max() <= 1e-5
for score in ("dot", "general", "concat"):
    assert layers.ScoreAttention(score)(x, x).shape == (2, 10, 16)
for cell, count in (("rnn", 1), ("lstm", 2), ("gru", 1)):
    decoder = layers.RecurrentDecoderBlock(16, 2, cell)
    outputs, weights = decoder(x, np.zeros((2, 2, count, 16), "float32"), x)
    assert outputs.shape == (2, 10, 16) and weights.shape == (2, 10, 10)
assert layers.GatherNodes()(x, ids % 10).shape == (2, 10, 16)
assert layers.GraphConvolution(5)(x, mask).shape == (2, 10, 5)
assert layers.PathAttention()(x[:, 0], x[:, :4], image, image[..., 0] > 0)[0].shape == (2, 19)
assert layers.QuadraticPositionAttention(4, 6)(image).shape == (2, 4, 5, 6)
assert layers.SharedEncoder(2, 4, 32)(x).shape == (2, 10, 16)
assert layers.FactorizedEmbedding(30, 4, 16)(ids).shape == (2, 10, 16)
assert layers.TextEmbedding(30, 16, 12)(ids).shape == (2, 10, 16)
assert layers.AdaptiveEmbedding(30, 16, (5, 12))(ids).shape == (2, 10, 16)
softmax = layers.AdaptiveSoftmax(30, (5, 12))
whole = softmax(x)
entries = np.take_along_axis(np.asarray(whole), ids[..., None], -1)[..., 0]
values = [v.value for v in softmax.trainable_variables]
found, _ = jax.jit(lambda v, a: softmax.stateless_call(v, [], a, labels=ids))(values, x)
assert np.abs(found - entries).max() <= 1e-5
assert layers.SinusoidalPositionEncoding()(x).shape == x.shape
assert layers.LearnedPositionEncoding(12)(x).shape == x.shape
print("all layers ran on JAX")
