"""Pruned heads and units: the smaller model equals the larger one with gates at 0."""

import numpy as np
import pytest

from distill.compression.structured_pruning import measure_importance, prune_structure
from distill.learning import VectorImitation
from distill.learning.vector_imitation import PlainTexts
from tests.models.small import sizes
from tfnlp.checkpoints import load_model, read_config, save_model
from tfnlp.layers import fake_quantize, get_ranges, set_ranges
from tfnlp.models import (
    AlbertConfig,
    BertConfig,
    DebertaV2Config,
    ElectraConfig,
    Gpt2Config,
    ModernBertConfig,
    RecurrentConfig,
    XLNetConfig,
    build_model,
)
from tfnlp.tasks import Classification
from tfnlp.text import Examples, LengthBatches
from tfnlp.utils.errors import InputError

SIZES = sizes(vocabulary_size=23, num_heads=4, hidden_dim=16, intermediate_dim=24, max_length=40)
ANY_HEADS = [BertConfig, ElectraConfig, AlbertConfig]
ALL_HEADS = [DebertaV2Config, ModernBertConfig, XLNetConfig, Gpt2Config]


def make_model(config, **changes):
    fields = SIZES | changes | ({"max_length": None} if config is XLNetConfig else {})
    model = build_model(config(**fields), "classifier", 2)
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(np.asarray(weight) + rng.normal(0, 0.1, weight.shape))
    return model


def blocks_of(model):
    ends = "/feed_forward/output/kernel"
    return [w.path.removesuffix(ends) for w in model.weights if w.path.endswith(ends)]


def random_importance(model):
    rng = np.random.default_rng(2)
    heads = {"heads": rng.random(4)} if model.text_config.any_head_dim else {}
    return {block: {"units": rng.random(24)} | heads for block in blocks_of(model)}


@pytest.mark.parametrize("config", ANY_HEADS + ALL_HEADS)
def test_a_pruned_model_is_the_whole_one_with_gates_at_0(config, random_inputs, tmp_path):
    model = make_model(config)
    importance, inputs = random_importance(model), random_inputs(3, 9, 23)
    heads = 3 if config in ANY_HEADS else None
    smaller = prune_structure(model, importance, heads, 10)
    assert smaller.count_params() < model.count_params()
    kernels = {w.path: w for w in model.weights}
    for block, scores in importance.items():  # the gates: rows of what a part goes into
        gate = (scores["units"] >= np.sort(scores["units"])[-10])[:, None]
        kernel = kernels[f"{block}/feed_forward/output/kernel"]
        kernel.assign(np.asarray(kernel) * gate)
        if heads:
            gate = np.repeat(scores["heads"] >= np.sort(scores["heads"])[-3], 4)[:, None]
            kernel = kernels[f"{block}/attention/output/kernel"]
            kernel.assign(np.asarray(kernel) * gate)
    expected = np.asarray(model(inputs)["logits"])
    np.testing.assert_allclose(smaller(inputs)["logits"], expected, atol=1e-5)
    save_model(smaller, tmp_path)
    loaded = load_model(tmp_path, "classifier")
    np.testing.assert_allclose(loaded(inputs)["logits"], expected, atol=1e-5)
    assert read_config(tmp_path) == smaller.text_config
    assert smaller.text_config.intermediate_dim == 10
    assert smaller.text_config.head_dim == (4 if heads else None)


def test_importance_is_the_gradient_of_a_gate(tokenizer):
    task = Classification(["bad", "good"])
    examples = Examples(["a fine film", "not a fine plot", "dull , dull film"], None, [1, 0, 0])
    model = make_model(BertConfig, vocabulary_size=tokenizer.vocabulary_size)
    found = measure_importance(model, task, tokenizer, examples, 16)
    assert found.keys() == {"encoder_0", "encoder_1"}
    kernels = {w.path: w for w in model.weights}
    step = 1e-3

    def losses(path, rows, scale):
        kernel = kernels[path]
        whole = np.asarray(kernel)
        cut = whole.copy()
        cut[rows] *= scale
        kernel.assign(cut)
        logits = np.asarray(model(tokenizer(examples.texts))["logits"], "float64")
        kernel.assign(whole)
        return np.log(np.exp(logits).sum(1)) - logits[[0, 1, 2], examples.labels]

    for part, kind, place, rows in (
        ("attention", "heads", 0, slice(0, 4)),
        ("attention", "heads", 3, slice(12, 16)),
        ("feed_forward", "units", 7, slice(7, 8)),
    ):
        path = f"encoder_1/{part}/output/kernel"
        slopes = (losses(path, rows, 1 + step) - losses(path, rows, 1 - step)) / (2 * step)
        expected = np.abs(slopes).mean()
        assert found["encoder_1"][kind][place] == pytest.approx(expected, rel=0.02, abs=2e-4)


@pytest.mark.filterwarnings("ignore:Even though the `tf.config")
def test_importance_is_of_texts_of_any_length(tokenizer, monkeypatch, no_graphs):
    task, seen = Classification(["bad", "good"]), []
    texts = ["film"] * 30 + ["a fine film , not a dull one"] * 30
    model = make_model(BertConfig, vocabulary_size=tokenizer.vocabulary_size, num_layers=1)
    original = LengthBatches.batch

    def batch(self, indices):
        seen.extend(indices)
        return original(self, indices)

    def looked_at(seed):
        seen.clear()
        examples = Examples(texts, None, [0, 1] * 30)
        measure_importance(model, task, tokenizer, examples, 16, limit=12, seed=seed)
        return seen[:12]  # what follows was read ahead

    monkeypatch.setattr(LengthBatches, "batch", batch)
    first = looked_at(0)
    assert 2 <= sum(i >= 30 for i in first) <= 10 and len({*first}) == 12
    assert looked_at(0) == first != looked_at(1)


def test_importance_of_vectors_is_what_they_depend_on(tokenizer):
    fields = SIZES | {"vocabulary_size": tokenizer.vocabulary_size, "num_layers": 1}
    model = build_model(BertConfig(**fields), "embedder")
    (kernel,) = (w for w in model.weights if w.path.endswith("attention/output/kernel"))
    kernel.assign(np.asarray(kernel) * np.repeat([0, 1, 0.01, 0.1], 4)[:, None])  # heads of 4 rows
    texts = PlainTexts(["a fine film", "dull", "정말 좋은 film", "a plot"] * 4)
    scores = measure_importance(model, VectorImitation(), tokenizer, texts, 16)["encoder_0"]
    assert scores["heads"].argsort().tolist() == [0, 2, 3, 1] and scores["heads"][0] == 0
    assert scores["units"].min() > 0


def test_models_that_cannot_be_pruned_are_refused():
    model = make_model(BertConfig)
    importance = random_importance(model)
    with pytest.raises(InputError, match="num_heads=5"):
        prune_structure(model, importance, 5)
    with pytest.raises(InputError, match="intermediate_dim=0"):
        prune_structure(model, importance, intermediate_dim=0)
    model = make_model(Gpt2Config)
    with pytest.raises(InputError, match="num_heads=2"):
        prune_structure(model, random_importance(model), 2)
    recurrent = build_model(RecurrentConfig(23, "gru", 2, 16), "classifier", 2)
    with pytest.raises(InputError, match="no attention heads"):
        measure_importance(recurrent, None, None, [], 8)


def test_a_pruned_model_keeps_its_quantisation_ranges():
    model = make_model(BertConfig, num_layers=3)
    ranges = set_fake_ranges(model)
    assert get_ranges(prune_structure(model, random_importance(model), 3, 10)) == ranges


def set_fake_ranges(model):
    """Fake-quantise a model; return its ranges, each another."""
    fake_quantize(model)
    names = sorted(get_ranges(model))
    set_ranges(model, {name: [-float(i), i + 1.0] for i, name in enumerate(names)})
    return get_ranges(model)


def test_a_pruned_model_can_be_pruned_again():
    model = make_model(BertConfig)
    heads = {"heads": np.array([4, 3, 2, 1]), "units": np.arange(24)}
    once = prune_structure(model, {block: heads for block in blocks_of(model)}, num_heads=2)
    left = {"heads": np.array([4, 3]), "units": np.arange(24)}
    twice = prune_structure(once, {block: left for block in blocks_of(once)}, num_heads=1)
    direct = prune_structure(model, {block: heads for block in blocks_of(model)}, num_heads=1)
    for found, expected in zip(twice.weights, direct.weights, strict=True):
        np.testing.assert_array_equal(found, expected)
