"""Heads, units and layers that go: what is left equals the whole model with gates at 0."""

import dataclasses

import numpy as np
import pytest

from distill.compression.layer_dropping import drop_layers
from distill.compression.structured_pruning import measure_importance, prune_structure
from distill.learning.layer_map import resolve_layer_map
from distill.learning.student import make_student, student_config
from tfnlp.checkpoints import load_model, read_config, save_model
from tfnlp.layers import fake_quantize, get_ranges, set_ranges
from tfnlp.models import (
    AlbertConfig,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    Gpt2Config,
    RecurrentConfig,
    RobertaConfig,
    XLNetConfig,
    build_model,
)
from tfnlp.tasks import Classification
from tfnlp.text import Examples, LengthBatches
from tfnlp.utils.errors import InputError

SIZES = {
    "vocabulary_size": 23,
    "num_layers": 2,
    "num_heads": 4,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "max_length": 40,
    "initializer_range": 0.3,
}
ANY_HEADS = [BertConfig, RobertaConfig, DistilBertConfig, ElectraConfig, AlbertConfig]
ALL_HEADS = [DebertaV2Config, XLNetConfig, Gpt2Config]


def make_model(config, **changes):
    sizes = SIZES | changes | ({"max_length": None} if config is XLNetConfig else {})
    model = build_model(config(**sizes), "classifier", 2)
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


def test_models_cut_from_a_fake_quantised_one_have_its_ranges():
    model = make_model(BertConfig, num_layers=3)
    fake_quantize(model)
    names = sorted(get_ranges(model))
    ranges = {name: [-float(i), i + 1.0] for i, name in enumerate(names)}
    set_ranges(model, ranges)
    assert get_ranges(prune_structure(model, random_importance(model), 3, 10)) == ranges
    smaller = get_ranges(drop_layers(model, 2, [0, 2]))
    assert len(smaller) == len(names) - sum(name.startswith("encoder_1/") for name in names)
    for name, found in smaller.items():
        assert found == ranges[name.replace("encoder_1/", "encoder_2/")]


def test_students_of_a_pruned_model_keep_its_heads():
    config = BertConfig(**SIZES | {"num_heads": 3, "head_dim": 4})
    assert student_config(config, 1) == dataclasses.replace(config, num_layers=1)
    narrow = student_config(config, 1, hidden_dim=8)
    assert (narrow.num_heads, narrow.head_dim, narrow.intermediate_dim) == (2, None, 12)
    assert student_config(config, 1, num_heads=2).head_dim is None
    student = make_student(build_model(config, "classifier", 2), 1)
    assert student.get_layer("encoder_0").attention.key_dim == 4


def test_students_are_made_of_transformers_alone():
    recurrent = RecurrentConfig(23, "gru", 2, 16)
    with pytest.raises(InputError, match="The teacher is a recurrent network"):
        drop_layers(build_model(recurrent, "classifier", 2), 1)
    with pytest.raises(InputError, match="The student is a recurrent network"):
        student_config(BertConfig(**SIZES), 1, family="gru")


def test_what_cannot_be_pruned_is_said():
    model = make_model(BertConfig)
    importance = random_importance(model)
    with pytest.raises(InputError, match="num_heads=5 must lie between 1 and the model's 4"):
        prune_structure(model, importance, 5)
    with pytest.raises(InputError, match=r"intermediate_dim=0 must lie between 1 and .* 24"):
        prune_structure(model, importance, intermediate_dim=0)
    model = make_model(Gpt2Config)
    with pytest.raises(InputError, match="num_heads=2: heads of a gpt2 are not pruned"):
        prune_structure(model, random_importance(model), 2)
    with pytest.raises(InputError, match="head_dim=8 must be None, or in families with BERT's"):
        Gpt2Config(head_dim=8)
    recurrent = build_model(RecurrentConfig(23, "gru", 2, 16), "classifier", 2)
    with pytest.raises(InputError, match="no attention heads or feed-forward units to prune"):
        prune_structure(recurrent, {}, intermediate_dim=8)
    with pytest.raises(InputError, match="no attention heads or feed-forward units to prune"):
        measure_importance(recurrent, None, None, [], 8)


def test_layers_that_stay():
    def kept(layer_map, there, count):
        return resolve_layer_map(layer_map, there, count)

    assert kept("first", 6, 4) == [0, 1, 2, 3]
    assert kept("alternate", 12, 8) == [0, 1, 2, 3, 5, 7, 9, 11]
    assert kept("alternate", 12, 6) == kept("uniform", 12, 6) == [1, 3, 5, 7, 9, 11]
    assert kept("alternate", 6, 6) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(InputError, match="num_layers=5 of 12 are fewer than half"):
        kept("alternate", 12, 5)
    with pytest.raises(InputError, match="num_layers=7 must lie between 1 and"):
        kept("first", 6, 7)


def test_dropped_layers_leave_the_others_as_they_were(random_inputs):
    model = make_model(BertConfig, num_layers=3)
    inputs = random_inputs(2, 7, 23)
    smaller = drop_layers(model, 2, [0, 2])
    layer = model.get_layer("encoder_1").count_params()
    assert model.count_params() - smaller.count_params() == layer
    for ours, theirs in (("encoder_0", "encoder_0"), ("encoder_1", "encoder_2")):
        expected = model.get_layer(theirs).get_weights()
        for a, b in zip(smaller.get_layer(ours).get_weights(), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert smaller(inputs)["logits"].shape == (2, 2)
    with pytest.raises(InputError, match="names a layer twice"):
        drop_layers(model, 2, [1, 1])
    with pytest.raises(InputError, match="names layer 3, but"):
        drop_layers(model, 2, [0, 3])
    assert drop_layers(model, 1).get_layer("encoder_0").count_params() == layer
