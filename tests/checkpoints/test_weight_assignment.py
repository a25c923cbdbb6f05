"""Tensors of a folder and variables of a model."""

import numpy as np
import pytest

from tests.checkpoints.stored_tensors import rewrite, tensors_of
from tfnlp.checkpoints import load_model
from tfnlp.utils.errors import InputError

QUERY = "bert.encoder.layer.1.attention.self.query.weight"


def test_loads_without_prefix_with_old_norm_names_and_buffers(saved, random_inputs, tiny_config):
    expected = load_model(saved)

    def change(tensors):
        for name in list(tensors):
            old = name.removeprefix("bert.")
            old = old.replace("LayerNorm.weight", "LayerNorm.gamma")
            tensors[old.replace("LayerNorm.bias", "LayerNorm.beta")] = tensors.pop(name)
        tensors["embeddings.position_ids"] = np.arange(48)

    rewrite(saved, change)
    inputs = random_inputs(2, 5, tiny_config.vocabulary_size)
    np.testing.assert_array_equal(
        load_model(saved)(inputs)["pooled_output"], expected(inputs)["pooled_output"]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop(QUERY), f"lacks .*{QUERY}"),
        (lambda t: t.update({QUERY: t[QUERY][:, :3].copy()}), r"\(32, 3\)"),
        (lambda t: t.pop("classifier.bias"), r"classifier\.bias"),
        (lambda t: t.update({"bert.odd": t[QUERY]}), r"bert\.odd"),
    ],
)
def test_wrong_tensors_are_named(change, message, saved):
    rewrite(saved, change)
    with pytest.raises(InputError, match=message):
        load_model(saved, "classifier")


def test_a_missing_head_starts_from_drawn_weights(saved, caplog):
    with caplog.at_level("INFO", "absl"):
        model = load_model(saved, "tagger", 4)
    (record,) = caplog.records
    assert record.levelname == "INFO"  # no warning, as every fine-tuning starts so
    assert f"A new tagger starts on the encoder of {saved}/" in record.getMessage()
    spans = load_model(saved, "answerer").get_layer("span").kernel
    choices = load_model(saved, "chooser").get_layer("classifier").kernel
    for kernel in (model.get_layer("classifier").kernel, spans, choices):
        assert 0.1 < np.std(kernel) < 0.3  # of initializer_range=0.2, and not cut at twice as much
    assert 0.4 < np.abs(model.get_layer("classifier").kernel).max() < 1


def test_weights_that_a_folder_should_have_are_missed(saved, caplog):
    stored = tensors_of(saved)
    rewrite(saved, lambda tensors: [tensors.pop(f"classifier.{n}") for n in ("weight", "bias")])
    load_model(saved, "classifier")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().endswith("so random: classifier.weight, classifier.bias.")
    caplog.clear()
    # The pooler is of the encoder, whose output nothing trains where it is loaded alone.
    names = [name for name in stored if name.startswith("bert.pooler.")]
    rewrite(saved, lambda tensors: [tensors.pop(name) for name in names])
    load_model(saved)
    (record,) = caplog.records
    assert record.levelname == "WARNING" and "pooler.dense.weight" in record.getMessage()
