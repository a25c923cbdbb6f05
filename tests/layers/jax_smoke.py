"""Run by test_jax_backend in a process of its own: every layer on Keras' JAX backend."""

import jax
import keras
import numpy as np
from keras import ops

from tests.layers.test_as_keras_layers import CASES, randomised
from tests.layers.witnesses import rand
from tfnlp import layers
from tfnlp.functional.lookups import table_rows

assert keras.backend.backend() == "jax"
for name, (make, inputs) in CASES.items():
    layer = make()
    layer(*(keras.Input(x.shape[1:], len(x), str(x.dtype)) for x in inputs))
    weights = ([v.value for v in layer.trainable_variables],)
    weights += ([v.value for v in layer.non_trainable_variables],)
    outputs, _ = jax.jit(layer.stateless_call)(*weights, *inputs)
    assert all(np.isfinite(y).all() for y in keras.tree.flatten(outputs)), name

x = rand(2, 10, 16)
mask = rand(2, 10, 10) < 0.8
for cls, arguments in (  # whole and in blocks of keys
    (layers.RelativeAttention, {"clamp_length": 6}),
    (layers.DisentangledAttention, {"terms": layers.ATTENTION_TERMS, "max_distance": 4}),
    (layers.TwoStreamAttention, {}),
):
    found = []
    further = {"segment_mask": ~mask} if cls is layers.TwoStreamAttention else {}
    for block_size in (None, 3):
        layer = cls(4, 4, block_size=block_size, **arguments)
        layer.build(x.shape)
        values = [v.value for v in randomised(layer).trainable_variables]

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

ids = np.random.default_rng(0).integers(0, 30, (2, 10))
masked = layers.TextEmbedding(30, 16, 12, pad_token_id=0)(ids)
for output in layers.TwoStreamBlock(4, 32)(masked, x):
    pooled = keras.layers.GlobalAveragePooling1D()(output)
    real = (ids != 0)[..., None]
    due = (np.asarray(output) * real).sum(1) / real.sum(1)
    assert np.abs(pooled - due).max() <= 1e-5
softmax = layers.AdaptiveSoftmax(30, (5, 12))
entries = np.take_along_axis(np.asarray(softmax(x)), ids[..., None], -1)[..., 0]
values = [v.value for v in softmax.trainable_variables]
found, _ = jax.jit(lambda v, a: softmax.stateless_call(v, [], a, labels=ids))(values, x)
assert np.abs(found - entries).max() <= 1e-5
table = np.random.default_rng(1).normal(size=(3, 4)).astype("float32")
for dtype in ("float32", "bfloat16"):
    found = [
        jax.value_and_grad(lambda t, rows=rows: ops.sum(rows(t) ** 2))(ops.cast(table, dtype))
        for rows in (lambda t: table_rows(t, ids % 3), lambda t: ops.take(t, ids % 3, axis=0))
    ]
    for a, b in zip(*found, strict=True):
        assert np.abs(a - b).max() <= (1e-5 if dtype == "float32" else 0.02) * np.abs(b).max()
        assert a.dtype == b.dtype == dtype
embedding = layers.TextEmbedding(30, 16, num_segments=2)
embedding(ids, ids % 2)


def segment_loss(table):
    tables = [table if v is embedding.segment_table else v.value for v in embedding.weights]
    return ops.sum(embedding.stateless_call(tables, [], ids, ids % 2)[0] ** 2)


# A scatter of segments takes 48 ms behind the blocks of BERT on a GPU.
steps = str(jax.make_jaxpr(jax.grad(segment_loss))(embedding.segment_table.value))
assert "scatter" not in steps
print("all layers ran on JAX")
