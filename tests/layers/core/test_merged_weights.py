"""Whatever copies the weights of a model with LoRA copies the merged ones."""

import keras
import numpy as np
import pytest

from distill.compression.calibration import calibrate
from distill.compression.rebuild import rebuild
from distill.learning import make_student
from tests.models.small import sizes
from tfnlp.checkpoints import from_keras_hub, to_keras_hub
from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.models import BertConfig, Gpt2Config, build_model
from tfnlp.objectives.lm_evaluation import at_memory_length
from tfnlp.quantization.fake_quantization import in_float
from tfnlp.training import add_lora


def adapted(config=None, head="classifier", layers=("all",)):
    """A model whose adapters change what it gives."""
    model = build_model(config or BertConfig(**sizes()), head, 2 if head == "classifier" else None)
    add_lora(model, 2, layers)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(0, 0.3, variable.shape))
    return model


def saved_by_keras(model, folder):
    model.save(folder / "model.keras")
    return keras.models.load_model(folder / "model.keras")


COPIES = {
    "student": lambda model, *_: make_student(model),
    "pruned": lambda model, *_: rebuild(model, model.text_config, lambda weight, value: value),
    "calibrated": lambda model, _, encodings: calibrate(model, encodings),
    "keras-hub": lambda model, *_: from_keras_hub(to_keras_hub(model))[0],
    "keras": lambda model, folder, _: saved_by_keras(model, folder),
}


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_gives_what_the_model_gives(copied, tokenizer, random_inputs, tmp_path):
    model = adapted(BertConfig(**sizes(vocabulary_size=tokenizer.vocabulary_size)))
    copy = COPIES[copied](model, tmp_path, tokenizer.encode(["a fine film", "dull"], max_length=8))
    inputs = random_inputs(2, 7, 20)
    with in_float(copy):  # of the calibrated one
        logits = copy(inputs)["logits"]
    np.testing.assert_allclose(logits, model(inputs)["logits"], atol=1e-5)
    assert not [v.path for v in copy.weights if v.name.startswith("lora_")]


def test_an_evaluation_with_another_memory_has_the_adapters():
    model = adapted(Gpt2Config(**sizes()), "causal_lm", ("query",))
    inputs = {"token_ids": np.array([[3, 5, 7]])}
    inputs = {name: inputs.get(name, np.ones((1, 3), "int32")) for name in model.input}
    copy = at_memory_length(model, 0)
    np.testing.assert_allclose(copy(inputs)["logits"], model(inputs)["logits"], atol=1e-5)


def test_half_precision_saves_what_float32_merges(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = adapted()
    keras.config.set_dtype_policy("float32")
    expected = merged_weights(model)
    kernel, *factors = (
        np.asarray(getattr(model.get_layer("encoder_0").attention.query, name))
        for name in ("_kernel", "lora_kernel_a", "lora_kernel_b")
    )
    path = "encoder_0/attention/query/kernel"
    np.testing.assert_allclose(expected[path], kernel + factors[0] @ factors[1], atol=1e-6)
    for variable in saved_by_keras(model, tmp_path).weights:
        np.testing.assert_array_equal(variable, expected[variable.path])
