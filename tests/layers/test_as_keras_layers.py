"""What Keras users expect of any layer: its options, shapes, masks, quantising, converting."""

import gc
import inspect
import json

import keras
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from tests.layers.witnesses import rand
from tfnlp import layers
from tfnlp.functional.poolings import POOLINGS

STATES, IDS, MASK = np.zeros((2, 4, 8), "float32"), np.ones((2, 4), "int32"), np.ones((2, 4))
ENTITIES, IMAGE = np.zeros((2, 4, 6), "float32"), np.zeros((2, 3, 4, 3), "float32")

# How each layer is made, and what it is called on.
CASES = {
    "AdaptiveEmbedding": (lambda **kw: layers.AdaptiveEmbedding(9, 8, (3,), **kw), [IDS]),
    "AdaptiveSoftmax": (lambda **kw: layers.AdaptiveSoftmax(9, (3,), **kw), [STATES]),
    "CharacterCNN": (lambda **kw: layers.CharacterCNN(8, (2, 3), 4, **kw), [IDS]),
    "ConvolutionBlock": (lambda **kw: layers.ConvolutionBlock(3, **kw), [STATES, STATES, MASK]),
    "DecoderBlock": (lambda **kw: layers.DecoderBlock(2, 16, **kw), [STATES, STATES]),
    "DisentangledAttention": (
        lambda **kw: layers.DisentangledAttention(2, 4, max_distance=3, **kw),
        [STATES],
    ),
    "EncoderBlock": (lambda **kw: layers.EncoderBlock(2, 16, **kw), [STATES]),
    "FactorizedEmbedding": (
        lambda **kw: layers.FactorizedEmbedding(9, 3, 8, use_output_bias=True, **kw),
        [IDS],
    ),
    "FeedForward": (lambda **kw: layers.FeedForward(16, gated=True, **kw), [STATES]),
    "GradientDisentangledEmbedding": (
        lambda **kw: layers.GradientDisentangledEmbedding(9, 8, 6, embedding_dim=4, **kw),
        [IDS, IDS],
    ),
    "KnowledgeBlock": (
        lambda **kw: layers.KnowledgeBlock(2, 16, num_entity_heads=3, **kw),
        [STATES, ENTITIES],
    ),
    "KnowledgeFusion": (lambda **kw: layers.KnowledgeFusion(16, **kw), [STATES, ENTITIES, MASK]),
    "GatherNodes": (layers.GatherNodes, [STATES, np.ones((2, 3, 2), "int32")]),
    "GraphConvolution": (
        lambda **kw: layers.GraphConvolution(5, **kw),
        [STATES, np.ones((2, 4, 4), "int32")],
    ),
    "LastState": (layers.LastState, [STATES, MASK]),
    "MeanPooling": (layers.MeanPooling, [STATES, MASK]),
    "LayerNormalization": (layers.LayerNormalization, [STATES]),
    "LearnedPositionEncoding": (lambda **kw: layers.LearnedPositionEncoding(5, **kw), [STATES]),
    "MergeChoices": (layers.MergeChoices, [np.ones((2, 3, 4), "int32")]),
    "MultiHeadAttention": (lambda **kw: layers.MultiHeadAttention(2, 4, **kw), [STATES, STATES]),
    "OutputBias": (layers.OutputBias, [STATES]),
    "ProjectedLSTM": (lambda **kw: layers.ProjectedLSTM(6, 3, **kw), [STATES]),
    "PathAttention": (
        layers.PathAttention,
        [STATES[:, 0], STATES, np.zeros((2, 4, 3, 5), "float32")],
    ),
    "QuadraticPositionAttention": (
        lambda **kw: layers.QuadraticPositionAttention(2, 5, value_dim=2, **kw),
        [IMAGE],
    ),
    "RecurrentDecoderBlock": (
        lambda **kw: layers.RecurrentDecoderBlock(8, 2, "gru", **kw),
        [STATES, np.zeros((2, 2, 1, 8), "float32"), STATES],
    ),
    "RelativeAttention": (
        lambda **kw: layers.RelativeAttention(2, 4, use_bias=True, **kw),
        [STATES],
    ),
    "RelativeBiases": (lambda **kw: layers.RelativeBiases(2, 4, **kw), [STATES]),
    "RelativePositionTable": (lambda **kw: layers.RelativePositionTable(3, **kw), [STATES]),
    "RotaryEmbedding": (layers.RotaryEmbedding, [np.zeros((2, 3, 4, 6), "float32")]),
    "ScalarMix": (layers.ScalarMix, [STATES]),
    "ScoreAttention": (
        lambda **kw: layers.ScoreAttention("concat", use_bias=True, **kw),
        [STATES, STATES],
    ),
    "SentencePooling": (
        lambda **kw: layers.SentencePooling(tuple(POOLINGS), **kw),
        [STATES, MASK],
    ),
    "SharedEncoder": (lambda **kw: layers.SharedEncoder(2, 2, 16, **kw), [STATES]),
    "SinusoidalPositionEncoding": (layers.SinusoidalPositionEncoding, [STATES]),
    "SplitChoices": (
        layers.SplitChoices,
        [np.ones((6, 1), "float32"), np.ones((2, 3, 4), "int32")],
    ),
    "TextEmbedding": (
        lambda **kw: layers.TextEmbedding(9, 8, max_length=6, embedding_dim=4, **kw),
        [IDS, IDS],
    ),
    "TwoStreamAttention": (
        lambda **kw: layers.TwoStreamAttention(2, 4, use_bias=True, **kw),
        [STATES, STATES],
    ),
    "TwoStreamBlock": (lambda **kw: layers.TwoStreamBlock(2, 16, **kw), [STATES, STATES]),
    "TwoStreamEmbedding": (lambda **kw: layers.TwoStreamEmbedding(9, 8, **kw), [IDS]),
}


# Weights that are neither kernels nor biases nor embeddings.
OF_POSITION = ("centers", "widths")

ATTENTIONS = {
    "plain": lambda: layers.MultiHeadAttention(2, 4),
    "relative": lambda: layers.RelativeAttention(2, 4),
    "two-stream": lambda: layers.TwoStreamAttention(2, 4),
    "disentangled": lambda: layers.DisentangledAttention(2, 4, max_distance=3),
    "in blocks": lambda: layers.MultiHeadAttention(2, 4, block_size=4),
}


def shapes(outputs):
    return keras.tree.map_structure(lambda x: tuple(x.shape), outputs)


def test_every_layer_has_a_case():
    public = {name for name in layers.__all__ if inspect.isclass(getattr(layers, name))}
    public = {name for name in public if issubclass(getattr(layers, name), keras.layers.Layer)}
    assert public == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_options_reach_every_weight_and_shapes_are_the_real_ones(name):
    make, inputs = CASES[name]
    options = {
        "regularizer": keras.regularizers.L2(0.5),
        "constraint": keras.constraints.MaxNorm(1.5),
        "initializer": keras.initializers.Constant(0.25),
    }
    given = {key: options[key.split("_")[-1]] for key in getattr(make(), "OPTIONS", ())}
    layer = make(**given)
    outputs = layer(*inputs)
    found = keras.tree.flatten(layer.compute_output_shape(*(x.shape for x in inputs)))
    due = keras.tree.flatten(shapes(outputs))
    assert [a for a, b in zip(found, due, strict=True) if b != a is not None] == []
    symbolic = [keras.Input(x.shape[1:], batch_size=2, dtype=x.dtype) for x in inputs]
    assert keras.tree.flatten(shapes(layer(*symbolic))) == found

    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config
    if not given:
        return
    weights = [w for w in layer.weights if "norm" not in w.path and w.name not in OF_POSITION]
    assert weights
    assert {type(w.regularizer) for w in weights} == {keras.regularizers.L2}
    assert {type(w.constraint) for w in weights} == {keras.constraints.MaxNorm}
    relative = ("content_bias", "position_bias", "segment_bias")  # drawn at random
    biases = [w for w in weights if "bias" in w.name and w.name not in relative]
    if "bias_initializer" in given:
        assert biases
        np.testing.assert_array_equal(np.concatenate([b.numpy() for b in biases]), 0.25)
    due = sum(0.5 * np.sum(w.numpy() ** 2) for w in weights if w.trainable)
    np.testing.assert_allclose(sum(layer.losses), due, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_no_two_weights_are_drawn_alike(name):
    make, inputs = CASES[name]
    parameters = inspect.signature(type(make()).__init__).parameters
    names = {key for key in parameters if key.endswith("_initializer")}
    names |= {key for key in getattr(make(), "OPTIONS", ()) if key.endswith("_initializer")}
    # An instance gives the same values each time that it is called.
    layer = make(**{key: keras.initializers.RandomNormal() for key in names})
    layer(*inputs)
    drawn = [w.numpy() for w in layer.weights if np.std(w)]
    for i, a in enumerate(drawn):
        for b in drawn[:i]:
            assert a.shape != b.shape or np.abs(a - b).max() > 1e-4


# Values of arguments of which double or half would not do, or that are None or text by default.
OTHERS = {
    **{"activation": "silu", "output_activation": "silu", "cell": "lstm", "score": "dot"},
    **{"sharing": "none", "terms": ("c2p", "p2p"), "modes": ("max",), "kernel_size": 5},
    **{"dropout_after": ("attention",), "normalized": ("attention",)},
    **{"cutoffs": (3, 5), "div_value": 2, "embedding_dim": 12, "rotary": layers.RotaryEmbedding()},
    **{"attention": layers.MultiHeadAttention(4, 2, dropout=0.6, block_size=2)},
    **{"feed_forward": layers.FeedForward(8), "norm": keras.layers.RMSNormalization()},
    **{"regularizer": keras.regularizers.L2(0.5), "constraint": keras.constraints.MaxNorm(3)},
    "initializer": keras.initializers.Constant(0.25),
}


def other(name, value):
    """Return another value of an argument than the layer has."""
    if name in OTHERS or name.endswith(("initializer", "regularizer", "constraint")):
        return OTHERS.get(name) or OTHERS[name.split("_")[-1]]
    if isinstance(value, bool):
        return not value
    return value + 0.6 if isinstance(value, float) else 2 * (value or 1)


@pytest.mark.parametrize("name", sorted({*CASES} - {"LayerNormalization"}))
def test_no_argument_is_lost_in_the_config(name):
    layer = CASES[name][0]()
    fields = layer.fields().keys() - {"shared_parts"} | {"activity_regularizer"}
    given = {key: other(key, getattr(layer, key, None)) for key in fields}
    layer, before = type(layer)(**given), layer.get_config()
    config = json.loads(json.dumps(layer.get_config()))
    assert [key for key in given if config.get(key) == before.get(key)] == []
    assert json.loads(json.dumps(type(layer).from_config(config).get_config())) == config


def pair(x, **options):
    """A `keras.layers.MultiHeadAttention`, and ours of the same weights."""
    theirs = keras.layers.MultiHeadAttention(2, 4, **options)
    theirs(x, x)
    return theirs, layers.MultiHeadAttention.from_keras(theirs)


def test_activity_is_regularised_as_in_keras():
    x = rand(2, 5, 8)
    theirs, ours = pair(x, activity_regularizer=keras.regularizers.L2(0.1))
    theirs(x, x), ours(x)
    assert len(ours.losses) == 4
    np.testing.assert_allclose(sorted(ours.losses), sorted(theirs.losses[-4:]), rtol=1e-5)
    # Also where query, key and value of a joint projection differ.
    joint = layers.DisentangledAttention(
        2, 4, max_distance=3, joint_projection=True, activity_regularizer="l2"
    )
    free = layers.DisentangledAttention(2, 4, max_distance=3, joint_projection=True)
    free(x), joint(x)
    free.set_weights(joint.get_weights())
    np.testing.assert_allclose(joint(x, x[:, :4]), free(x, x[:, :4]), atol=1e-6)
    assert len(joint.losses) > 1 and not free.losses


@pytest.mark.parametrize("name", ["plain", "relative", "disentangled"])
def test_arguments_by_position_are_those_of_keras(name):
    layer, theirs = ATTENTIONS[name](), keras.layers.MultiHeadAttention

    def names(function, count):
        return [*inspect.signature(function).parameters][:count]

    renamed = {"output_shape": "output_dim"}
    due = [renamed.get(n, n) for n in names(theirs.__init__, 7)][1:]
    fields = type(layer)(2, 4, 3, 0.1, False, 8).fields()
    assert [fields[name] for name in due] == [2, 4, 3, 0.1, False, 8]
    with pytest.raises(TypeError, match="positional argument"):
        type(layer)(2, 4, 3, 0.1, False, 8, None)
    assert names(type(layer).call, 11) == names(theirs.call, 11)

    x, mask = rand(2, 5, 8), np.tri(5, dtype=bool)[None].repeat(2, 0)
    expected = layer(x, x, x, attention_mask=mask)
    assert np.abs(expected - layer(x, x, x)).max() > 1e-3
    np.testing.assert_array_equal(layer(x, x, x, mask), expected)
    inputs = [keras.Input((5, 8)), keras.Input((5, 5))]
    model = keras.Model(inputs, layer(inputs[0], inputs[0], inputs[0], inputs[1]))
    np.testing.assert_allclose(model([x, mask]), expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"query_mask has shape .* must have 2 axes"):
        layer(x, x, x, mask, attention_mask=mask)
    with pytest.raises(ValueError, match=r"query_mask has shape \(5, 5\), but must be \(2, 5\)"):
        layer(x, x, x, mask[0])


def test_masks_for_each_head_are_those_of_keras():
    rng = np.random.default_rng(0)
    x = rand(3, 5, 8)
    theirs, ours = pair(x)
    blocks = layers.MultiHeadAttention(2, 4, block_size=4)
    blocks.build(x.shape)
    blocks.set_weights(ours.get_weights())
    for shape in ((3, 2, 5, 5), (1, 2, 1, 5), (3, 1, 5, 5)):
        mask = rng.random(shape) < 0.6
        mask[..., 0] = True  # of a row that sees nothing Keras takes the mean
        padding = np.arange(5) < [[5], [3], [2]]
        for causal in (False, True):
            arguments = {"attention_mask": mask, "use_causal_mask": causal}
            expected = theirs(x, x, **arguments)
            np.testing.assert_allclose(ours(x, **arguments), expected, atol=2e-6)
            np.testing.assert_allclose(blocks(x, **arguments), expected, atol=2e-6)
            whole = mask & padding[:, None, None]
            expected = ours(x, attention_mask=whole, use_causal_mask=causal)
            np.testing.assert_allclose(ours(x, key_mask=padding, **arguments), expected, atol=2e-6)


def test_a_mask_of_values_holds_beside_one_of_keys():
    x = rand(1, 4, 8)
    theirs, layer = pair(x)
    masks = {"value_mask": np.array([[1, 1, 0, 1]]), "key_mask": np.array([[1, 1, 1, 0]])}
    found = layer(x, x, x, **masks)
    expected = layer(x, x, x, attention_mask=np.array([[[1, 1, 0, 0]]]))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(theirs(x, x, x, **masks), expected, atol=1e-6)


def randomised(model):
    rng = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape, scale=0.4))
    return model


def test_a_model_with_keras_masks_converts_to_tflite(tmp_path):
    """By Keras' own export, to builtins alone, of open lengths."""
    ids = keras.Input((None,), dtype="int32")
    states = keras.layers.Embedding(10, 8, mask_zero=True)(ids)
    outputs = {name: make()(states) for name, make in ATTENTIONS.items() if name != "plain"}
    outputs["encoder"] = layers.EncoderBlock(2, 16)(states)
    outputs["decoder"] = layers.DecoderBlock(2, 16)(states, states)  # causal, and across
    outputs["score"] = layers.ScoreAttention()(states, states)
    model = randomised(keras.Model(ids, outputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    path = str(tmp_path / "model.tflite")
    model.export(path, format="litert", verbose=False)
    interpreter = Interpreter(path)
    (key,) = interpreter.get_input_details()
    for row in ([3, 4, 5, 0, 0], [7, 1, 2, 6, 9, 8, 3]):
        x = np.array([row], "int32")
        interpreter.resize_tensor_input(key["index"], x.shape)
        interpreter.allocate_tensors()
        found = interpreter.get_signature_runner()(**{_only(interpreter): x})
        expected, again = model(x), loaded(x)
        assert set(found) == set(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)
            np.testing.assert_array_equal(again[name], value, err_msg=name)
    short, padded = model(np.array([[3, 4, 5]])), model(np.array([[3, 4, 5, 0, 0]]))
    for name, value in short.items():
        np.testing.assert_allclose(padded[name][:, :3], value, atol=1e-5, err_msg=name)


def _only(interpreter):
    (signature,) = interpreter.get_signature_list().values()
    (name,) = signature["inputs"]
    return name


def test_quantises_as_keras_layers_do_and_saves(tmp_path):
    ids = keras.Input((None,), dtype="int32")
    embedding = layers.FactorizedEmbedding(10, 4, 8)
    states = embedding(ids)
    joint = layers.DisentangledAttention(2, 4, max_distance=3, joint_projection=True)
    outputs = {
        "relative": layers.EncoderBlock(2, 16, attention=layers.RelativeAttention(2, 4))(states),
        "joint": joint(states),
        "joint, across": joint(states, layers.FeedForward(4)(states)),
        "logits": embedding(states, reverse=True),
    }
    model = randomised(keras.Model(ids, outputs))
    x = np.array([[3, 4, 5, 1, 2, 9]])
    before = model(x)
    gc.freeze()  # Keras collects garbage for each kernel that it replaces
    model.quantize("int8", filters=lambda layer: isinstance(layer, keras.layers.Dense))
    kernels = [w for w in model.weights if w.name == "kernel"]
    assert {w.dtype for w in kernels} == {"int8"}
    after = model(x)
    for name, value in before.items():
        error = np.abs(after[name] - value).max()
        assert 0 < error < 0.05 * np.abs(value).max(), name
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for name, value in loaded(x).items():
        np.testing.assert_array_equal(value, after[name], err_msg=name)
