"""Replaced-token detection and DeBERTa's masked LM: the losses and gradients of `transformers`."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.torch import load_file

from tests.objectives.small import CONFIGS, make_batch
from tests.parity.compare import check_gradients, near
from tfnlp.checkpoints import map_of, save_model
from tfnlp.objectives import ReplacedTokens

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")


def stirred(model, seed=0):
    """The model with biases, norms and differences that are not what they start as."""
    rng = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        if len(weight.shape) == 1 or "difference" in weight.name:
            weight.assign_add(0.2 * rng.normal(size=weight.shape).astype("float32"))
    return model


def as_torch(inputs, name):
    ids = {key: torch.tensor(np.asarray(value)).long() for key, value in inputs.items()}
    given = {"input_ids": ids["token_ids"], "attention_mask": ids["padding_mask"]}
    return given | ({"token_type_ids": ids["segment_ids"]} if name.startswith("electra") else {})


def spread(labels, positions, length):
    """Labels (B, L) of those (B, P) at positions (B, P)."""
    whole = np.full((len(labels), length), -100)
    for row, column in np.argwhere(labels != -100):
        whole[row, positions[row, column]] = labels[row, column]
    return whole


def their_gradients(model, theirs):
    """Our variable's id: the gradient of the reference's parameter, in our shape."""
    parameters = dict(theirs.named_parameters())
    family, variables = map_of(model.text_config), {w.path: w for w in model.weights}
    found = {}
    for weight in family.weights(model).values():
        name = weight.name if weight.head else family.prefix + weight.name
        gradient = parameters[name].grad.numpy()
        found[id(variables[weight.path])] = gradient.T if weight.transpose else gradient
    return found


@pytest.mark.parametrize("name", ["electra", "electra_wide"])
def test_electra_of_both_losses_together(name, tmp_path):
    objective = ReplacedTokens()
    models = objective.build(CONFIGS[name])
    theirs = {}
    for model in models.values():
        stirred(model)
    for kind, suffix in (("generator", "ForMaskedLM"), ("discriminator", "ForPreTraining")):
        save_model(models[kind], tmp_path / kind)
        cls = getattr(transformers, f"Electra{suffix}")
        theirs[kind] = cls.from_pretrained(tmp_path / kind, attn_implementation="eager").eval()
    trained = objective.trained(models)
    inputs, labels, _ = make_batch(rows=4, length=11)
    outputs = trained(inputs)
    read = keras.Model(trained.input, trained.get_layer("replace_tokens").output)
    text, replaced = (np.asarray(x) for x in read(inputs))
    np.testing.assert_array_equal(replaced, outputs["replaced"])
    assert 0 < replaced.sum() < np.sum(labels > 0) + 1

    everywhere = torch.tensor(spread(labels, inputs["masked_positions"], 11))
    expected = {
        "generator_loss": theirs["generator"](**as_torch(inputs, name), labels=everywhere).loss,
        "discriminator_loss": theirs["discriminator"](
            **as_torch(inputs | {"token_ids": text}, name), labels=torch.tensor(replaced)
        ).loss,
    }
    with tf.GradientTape() as tape:
        losses = objective.losses(labels, trained(inputs))
        loss = losses["generator_loss"] + 50.0 * losses["discriminator_loss"]
    for key, value in expected.items():
        near(losses[key], value.item(), 1e-5)
    (expected["generator_loss"] + 50.0 * expected["discriminator_loss"]).backward()
    # What is shared has the sum of both models' gradients.
    sums = {}
    for kind, model in models.items():
        for key, gradient in their_gradients(model, theirs[kind]).items():
            sums[key] = sums.get(key, 0) + gradient
    weights = trained.trainable_weights
    assert {id(w) for w in weights} == sums.keys()
    check_gradients(tape, loss, [(w, sums[id(w)], False) for w in weights])


def test_a_deberta_v3_after_training_is_one_for_transformers(tmp_path):
    """`transformers` has its encoder; the head is the sum, norm and layers of the release."""
    name = "deberta_v3"
    objective = ReplacedTokens()
    models = objective.build(CONFIGS[name])
    for model in models.values():
        stirred(model)
    discriminator = models["discriminator"]
    assert np.abs(discriminator.get_layer("embeddings").token_difference).max() > 0.1
    save_model(discriminator, tmp_path)
    theirs, loading = transformers.AutoModel.from_pretrained(
        tmp_path, attn_implementation="eager", output_loading_info=True
    )
    assert type(theirs).__name__ == "DebertaV2Model" and not loading["missing_keys"]
    assert {key.split(".")[0] for key in loading["unexpected_keys"]} == {"mask_predictions"}
    theirs.eval()
    trained = objective.trained(models)
    inputs, labels, _ = make_batch(rows=4, length=11)
    read = keras.Model(trained.input, trained.get_layer("replace_tokens").output)
    text, replaced = (np.asarray(x) for x in read(inputs))
    tensors = load_file(tmp_path / "model.safetensors")
    head = {
        key.removeprefix("mask_predictions."): value.requires_grad_()
        for key, value in tensors.items()
        if key.startswith("mask_predictions.")
    }
    states = theirs(**as_torch(inputs | {"token_ids": text}, name)).last_hidden_state
    functional = torch.nn.functional
    x = functional.layer_norm(
        states[:, :1] + states, (16,), head["LayerNorm.weight"], head["LayerNorm.bias"], 1e-7
    )
    x = functional.gelu(functional.linear(x, head["dense.weight"], head["dense.bias"]))
    logits = functional.linear(x, head["classifier.weight"], head["classifier.bias"])[..., 0]
    real = torch.tensor(inputs["padding_mask"]) == 1
    expected = functional.binary_cross_entropy_with_logits(
        logits[real], torch.tensor(replaced).float()[real]
    )
    with tf.GradientTape() as tape:
        loss = objective.losses(labels, trained(inputs))["discriminator_loss"]
    near(loss, expected.item(), 1e-5)
    expected.backward()
    parameters = dict(theirs.named_parameters())
    variables = {w.path: w for w in discriminator.weights}
    named = []
    for weight in map_of(discriminator.text_config).weights(discriminator).values():
        stem = weight.name.removeprefix("mask_predictions.")
        gradient = (head[stem] if weight.head else parameters[weight.name]).grad.numpy()
        # The table's gradient is that of the differences, all of it.
        variable = variables[weight.path.replace("token_table", "token_difference")]
        named.append((variable, gradient.T if weight.transpose else gradient, False))
    check_gradients(tape, loss, named)
