"""What every attention layer promises: masks, precision, dropout, errors."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp import layers

MAKERS = {
    "plain": lambda **kw: layers.MultiHeadAttention(2, 4, **kw),
    "rotary and local": lambda **kw: layers.MultiHeadAttention(
        2, 4, rotary=layers.RotaryEmbedding(), window=2, **kw
    ),
    "relative": lambda **kw: layers.RelativeAttention(2, 4, clamp_length=6, **kw),
    "two-stream": lambda **kw: layers.TwoStreamAttention(2, 4, **kw),
    "disentangled": lambda **kw: layers.DisentangledAttention(2, 4, max_distance=5, **kw),
    "DeBERTa v1": lambda **kw: layers.DisentangledAttention(
        2, 4, max_distance=5, joint_projection=True, **kw
    ),
    "DeBERTa v3": lambda **kw: layers.DisentangledAttention(
        2, 4, max_distance=9, num_buckets=4, share_att_key=True, normalize_positions=True, **kw
    ),
    "four terms": lambda **kw: layers.DisentangledAttention(
        2, 4, terms=layers.ATTENTION_TERMS, max_distance=5, **kw
    ),
    "dot": lambda **kw: Recurrent("dot", **kw),
    "general": lambda **kw: Recurrent("general", **kw),
    "concat": lambda **kw: Recurrent("concat", units=6, **kw),
}


@keras.saving.register_keras_serializable("tests")
class Recurrent(layers.ScoreAttention):
    """`ScoreAttention` of a sequence to itself, to be tested as the others are."""

    def build(self, query_shape):
        super().build(query_shape, query_shape)

    def call(self, query, training=None, mask=None, **kwargs):
        masks = {"query_mask": mask, "value_mask": mask}
        return super().call(query, query, training=training, **masks, **kwargs)

    def compute_output_spec(self, query, **kwargs):
        return super().compute_output_spec(query, query, **kwargs)


def made(name, **kwargs):
    layer = MAKERS[name](**kwargs)
    layer.build((None, None, 8))
    rng = np.random.default_rng(0)
    layer.set_weights([rng.normal(size=w.shape, scale=0.4) for w in layer.weights])
    return layer


def text(batch=2, length=6, seed=0):
    return np.random.default_rng(seed).normal(size=(batch, length, 8)).astype("float32")


@pytest.mark.parametrize("name", MAKERS)
def test_fully_masked_row_gives_zeros_and_finite_gradients(name):
    layer = made(name)
    if hasattr(layer, "output_dense") and layer.output_dense.bias is not None:
        layer.output_dense.bias.assign(np.zeros(8))
    x = tf.constant(text())
    mask = tf.constant([[True] * 6, [False] * 6])[:, None, :]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, attention_mask=mask)
        loss = tf.reduce_sum(y**2)
    variables = [x, *(v.value for v in layer.trainable_variables)]
    gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, variables) if g is not None]
    np.testing.assert_array_equal(y[1], np.zeros((6, 8)))
    assert np.abs(y[0]).max() > 1e-3
    assert all(np.isfinite(g).all() for g in gradients)
    np.testing.assert_array_equal(gradients[0][1], np.zeros((6, 8)))


@pytest.mark.parametrize("name", MAKERS)
def test_a_mask_may_be_of_all_texts_of_each_or_of_each_head(name):
    layer = made(name)
    mask = np.random.default_rng(0).random((6, 6)) < 0.6
    expected = layer(text(), attention_mask=np.tile(mask, (2, 1, 1)).astype("int32"))
    for same in (mask, mask[None, None].repeat(2, 0)):
        np.testing.assert_array_equal(layer(text(), attention_mask=same), expected)
    if hasattr(layer, "num_heads"):
        by_head = np.tile(mask, (2, 2, 1, 1))
        np.testing.assert_allclose(layer(text(), attention_mask=by_head), expected, atol=1e-6)
        by_head[:, 1] = True
        assert np.abs(layer(text(), attention_mask=by_head) - expected).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "policy"),
    [(name, "mixed_float16") for name in MAKERS] + [("four terms", "mixed_bfloat16")],
)
def test_mixed_precision_stays_close_and_finite(name, policy):
    exact = made(name)
    mixed = MAKERS[name](dtype=policy)
    mixed.build((None, None, 8))
    mixed.set_weights(exact.get_weights())
    mask = np.array([[1, 1, 1, 0, 0, 0], [0] * 6], bool)[:, None]
    x = tf.constant(text())
    results = []
    for layer in (mixed, exact):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, attention_mask=mask)
            loss = tf.reduce_sum(tf.cast(y, "float32") ** 2)
        results.append((y, tape.gradient(loss, x)))
    (y, gradient), (expected, expected_gradient) = results
    asked = {"return_attention_scores": True}
    spec = mixed.compute_output_spec(keras.Input((6, 8)), **asked)
    assert [t.dtype for t in spec] == [t.dtype for t in mixed(x, **asked)]
    assert y.dtype == policy.removeprefix("mixed_")
    tolerance = 0.01 if policy == "mixed_float16" else 0.08
    largest = np.abs(expected).max()
    np.testing.assert_allclose(tf.cast(y, "float32"), expected, atol=tolerance * largest)
    largest = np.abs(expected_gradient).max()
    np.testing.assert_allclose(gradient, expected_gradient, atol=3 * tolerance * largest)


@pytest.mark.parametrize("name", MAKERS)
def test_dropout_drops_only_in_training(name):
    layer = MAKERS[name](dropout=0.5)
    np.testing.assert_array_equal(layer(text()), layer(text(), training=False))
    assert np.abs(layer(text(), training=True) - layer(text())).max() > 1e-3


def test_both_streams_drop_the_same_positions():
    """As XLNet has it: the sinusoids are dropped once, before the layers."""
    layer = layers.TwoStreamAttention(2, 4, position_dropout=0.5)
    content, query = layer(text(), text(), training=True)
    np.testing.assert_allclose(content, query, atol=1e-6)
    assert np.abs(content - layer(text())).max() > 1e-3


WRONG_MASKS = [
    (np.ones((2, 6)), r".*\(batch, 1, source\)"),
    (np.ones((2, 6, 7)), r"\(2, 6, 6\)"),
    (np.ones((3, 6, 6)), r"\(2, 6, 6\)"),
    (np.ones((2, 3, 6, 6)), r"\(2, [12], 6, 6\)"),
    (np.ones(6), r"\(2, 6, 6\)"),
]


@pytest.mark.parametrize("name", MAKERS)
def test_refuses_masks_and_arguments_that_do_not_fit(name):
    layer = MAKERS[name]()
    for mask, message in WRONG_MASKS:
        with pytest.raises(ValueError, match=f"attention_mask has shape .* must be {message}"):
            layer(text(), attention_mask=mask)
    if name in ("relative", "two-stream"):  # a mask counts the memory
        with pytest.raises(ValueError, match=r"attention_mask has shape .* \(2, 6, 9\)"):
            layer(text(), memory=text(2, 3), attention_mask=np.ones((2, 6, 6)))
    with pytest.raises(TypeError, match="causal_mask_please"):
        layer(text(), causal_mask_please=True)


def two_streams(**streams):
    return layers.TwoStreamAttention(2, 4)(text(), **streams)


def of_bias(bias):
    return layers.RelativeAttention(2, 4)(text(), content_bias=bias, position_bias=bias)


def of_convolution(**options):
    convolution = keras.layers.Conv2D(4, 3, **options)
    convolution.build((None, 8, 8, 4))
    layers.QuadraticPositionAttention.from_convolution(convolution)


def disentangled(**options):
    return layers.DisentangledAttention(2, 4, **options)


FOUR, SIX = np.zeros((2, 4, 8)), np.zeros((2, 6, 8))
NARROW, MAPPING, NINE = np.ones((2, 6, 5)), np.zeros((2, 4, 5)), np.zeros((9, 8))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.MultiHeadAttention(2, 4, window=0), "window=0"),
        (lambda: layers.RotaryEmbedding()(np.zeros((1, 2, 4, 3))), "dim=3"),
        (lambda: layers.MultiHeadAttention(2, 4, window=2)(text(), text(length=4)), "window"),
        (lambda: layers.RelativeAttention(0, 4), "num_heads=0"),
        (lambda: layers.RelativeAttention(2, 4, clamp_length=0), "clamp_length=0"),
        (lambda: layers.RelativeAttention(2, 4)(np.zeros((1, 3, 7))), "dim=7"),
        (lambda: disentangled(terms=("c2c", "q2q")), "'q2q'"),
        (lambda: disentangled(terms="c2p"), "must be a tuple"),
        (lambda: disentangled(terms=()), "one or more"),
        (lambda: disentangled(max_distance=0), "max_distance=0"),
        (lambda: disentangled(max_distance=4, num_buckets=8), "num_buckets=8"),
        (lambda: disentangled(max_distance=5)(text(), position_table=NINE), "9 rows"),
        (lambda: layers.RelativePositionTable(-1), "max_distance=-1"),
        (lambda: layers.ScoreAttention("cosine"), "score='cosine'"),
        (lambda: layers.QuadraticPositionAttention(0, 3), "num_heads=0"),
        (lambda: of_convolution(strides=2), "strides"),
        (lambda: of_convolution(groups=2), "groups"),
        (lambda: layers.SharedEncoder(4, 2, 8, sharing="some"), "sharing='some'"),
        (lambda: layers.SharedEncoder(4, 2, 8, num_groups=3), "num_groups=3 must divide"),
        (lambda: layers.SharedEncoder(2, 3, 8)(text()), "num_heads=3 does not divide"),
        (lambda: layers.SinusoidalPositionEncoding()(np.zeros((1, 2, 5))), "dim=5"),
        (lambda: layers.SinusoidalPositionEncoding(max_length=4).build((1, 2, 5)), "dim=5"),
        (lambda: layers.LearnedPositionEncoding(4)(text()), "length 6, .* max_length=4"),
        (lambda: layers.AdaptiveEmbedding(10, 8, cutoffs=(4, 4)), "cutoffs=.* must rise"),
        (lambda: layers.ConvolutionBlock(4), "kernel_size=4 must be odd"),
        (lambda: layers.KnowledgeBlock(2, 12)(text(), FOUR[..., :6]), "num_heads=4"),
        (lambda: of_bias(np.zeros((1, 4))), "content_bias"),
        (lambda: layers.update_memory(None, text(), 0), "memory_length=0"),
        (lambda: two_streams(query_stream=FOUR), "4 positions"),
        (lambda: two_streams(query_stream=FOUR, target_mapping=MAPPING), "5 positions"),
        (lambda: two_streams(segment_mask=NARROW), "segment_mask"),
        (lambda: two_streams(query_stream=SIX, query_attention_mask=NARROW), "query_attention"),
    ],
)
def test_errors_name_the_argument_and_what_was_due(make, message):
    with pytest.raises(ValueError, match=message):
        make()


OF_STATES = {
    "plain": (lambda: layers.MultiHeadAttention(2, 4), ("query", "value", "key")),
    "joint": (MAKERS["DeBERTa v1"], ("query", "value", "key")),
    "score": (layers.ScoreAttention, ("query", "value", "key")),
    "two-stream": (MAKERS["two-stream"], ("content_stream", "query_stream")),
    "encoder": (lambda: layers.EncoderBlock(2, 12), ("inputs", "value")),
    "shared": (lambda: layers.SharedEncoder(2, 2, 12), ("inputs",)),
    "decoder": (lambda: layers.DecoderBlock(2, 12), ("inputs", "encoder_outputs")),
    "streams": (lambda: layers.TwoStreamBlock(2, 12), ("content_stream", "query_stream")),
}


@pytest.mark.parametrize("name", OF_STATES)
def test_states_have_three_axes(name):
    make, tensors = OF_STATES[name]
    for wrong in tensors:
        built, states = make(), dict.fromkeys(tensors, SIX)
        built(**states)
        for layer in (make(), built):
            with pytest.raises(ValueError, match=r"has shape \(6, 8\), but must have 3"):
                layer(**states | {wrong: SIX[0]})


@pytest.mark.parametrize(("block", "count"), [(layers.EncoderBlock, 1), (layers.DecoderBlock, 2)])
def test_blocks_take_a_symbolic_mask_by_position(block, count):
    x = np.random.default_rng(0).random((count, 2, 6, 8)).astype("float32")
    seen = np.tri(6, dtype=bool)[None].repeat(2, 0)
    symbolic = [*(keras.Input((6, 8)) for _ in x), keras.Input((6, 6), dtype="bool")]
    layer = block(2, 12)
    model = keras.Model(symbolic, layer(*symbolic, return_attention_scores=True))
    due = layer(*x, attention_mask=seen, return_attention_scores=True)
    for a, b in zip(model([*x, seen]), due, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_an_image_takes_a_symbolic_mask():
    inputs, mask = keras.Input((2, 3, 5)), keras.Input((6, 6), dtype="bool")
    layer = layers.QuadraticPositionAttention(2, 4)
    model = keras.Model([inputs, mask], layer(inputs, attention_mask=mask))
    x, seen = np.random.default_rng(0).random((1, 2, 3, 5)), np.tri(6, dtype=bool)[None]
    np.testing.assert_allclose(model([x, seen]), layer(x, attention_mask=seen), atol=1e-6)
