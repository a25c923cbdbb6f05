"""Encoder-decoders against `transformers`' Marian and Pegasus: outputs, gradients and folders."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from tests.parity.compare import check_gradients, near
from tfnlp.checkpoints import load_model, map_of, read_head, save_model
from tfnlp.models import TransformerConfig, build_model
from tfnlp.utils.errors import InputError

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

V, PAD = 60, 59
FIELDS = {"encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 40}
FIELDS |= {"decoder_layers": 3, "decoder_attention_heads": 2, "decoder_ffn_dim": 32}
FIELDS |= {"vocab_size": V, "d_model": 24, "max_position_embeddings": 600, "init_std": 0.3}
FIELDS |= {"dropout": 0.0, "activation_function": "swish", "scale_embedding": True}
FIELDS |= {"pad_token_id": PAD, "decoder_start_token_id": PAD, "eos_token_id": 0}
TWO_TABLES = {"share_encoder_decoder_embeddings": False, "vocab_size": 70}
CASES = {
    "marian": ("Marian", "MTModel", {}),
    "marian of two tables": ("Marian", "MTModel", TWO_TABLES | {"decoder_vocab_size": V}),
    "marian without ties": ("Marian", "MTModel", {"tie_word_embeddings": False}),
    "marian of gelu, not scaled": (
        *("Marian", "MTModel"),
        {"activation_function": "gelu", "scale_embedding": False},
    ),
    "pegasus": ("Pegasus", "ForConditionalGeneration", {"activation_function": "relu"}),
}


def reference(name, folder):
    """A small random model of `transformers`, saved to a folder."""
    torch.manual_seed(0)
    stem, suffix, fields = CASES[name]
    config = getattr(transformers, f"{stem}Config")(**FIELDS | fields)
    config._attn_implementation = "eager"
    model = getattr(transformers, stem + suffix)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
        model.final_logits_bias.add_(torch.randn_like(model.final_logits_bias))
    model.save_pretrained(folder)
    return model


def make_inputs(length, target_length, masked):
    """Sources and targets without the padding's id, whose row of the table they do not train."""
    rng = np.random.default_rng(length)
    mask = np.ones((2, length), "int32")
    if masked:
        mask[0, (length + 1) // 2 :] = 0
    return {
        "encoder_token_ids": rng.integers(0, PAD, (2, length)).astype("int32"),
        "encoder_padding_mask": mask,
        "decoder_token_ids": rng.integers(0, PAD, (2, target_length)).astype("int32"),
    }


def run(model, inputs, **kwargs):
    ids, mask, targets = (torch.tensor(x).long() for x in inputs.values())
    return model(input_ids=ids, attention_mask=mask, decoder_input_ids=targets, **kwargs)


def named_gradients(ours, theirs):
    """(variable, the reference's gradient, whether to transpose it) for every variable."""
    parameters = dict(theirs.named_parameters())
    variables = {v.path: v for v in ours.trainable_variables}
    family = map_of(ours.text_config)
    named = []
    for weight in family.weights(ours).values():
        if weight.path in variables:
            prefix = "" if weight.head else family.prefix
            gradient = parameters[prefix + weight.name].grad.numpy()
            named.append((variables[weight.path], gradient, weight.transpose))
    assert len(named) == len(variables)
    return named


@pytest.mark.parametrize("name", CASES)
def test_states_scores_gradients_and_files(name, tmp_path):
    theirs = reference(name, tmp_path)
    assert read_head(tmp_path) == "sequence_to_sequence"
    asked = {"hidden_states": True, "attention_scores": True}
    ours = load_model(tmp_path, "sequence_to_sequence", **asked)
    for length, target_length, masked in ((1, 1, False), (7, 4, True), (5, 64, False)):
        inputs = make_inputs(length, target_length, masked)
        real = inputs["encoder_padding_mask"]
        pull = np.random.default_rng(1).normal(size=(2, target_length, V)).astype("float32")
        theirs.zero_grad()
        expected = run(theirs, inputs, output_hidden_states=True, output_attentions=True)
        with tf.GradientTape() as tape:
            found = ours(inputs)
            loss = tf.reduce_sum(found["logits"] * pull)
        scale = max(1, float(expected.logits.detach().abs().max()))
        near(found["logits"], expected.logits.detach(), 1e-5 * scale)
        for a, b in zip(found["hidden_states"], expected.decoder_hidden_states, strict=True):
            near(a, b.detach(), 1e-5 * max(1, float(b.detach().abs().max())))
        pairs = zip(found["encoder_hidden_states"], expected.encoder_hidden_states, strict=True)
        for a, b in pairs:
            shown = real[..., None]
            near(
                a * shown, b.detach().numpy() * shown, 1e-5 * max(1, float(b.detach().abs().max()))
            )
        for seen, of, names in (
            (np.tri(target_length), expected.decoder_attentions, "attention_scores"),
            (real[:, None, None, :], expected.cross_attentions, "cross_attention_scores"),
        ):
            for a, b in zip(found[names], of, strict=True):
                weights = tf.nn.softmax(a + np.where(seen, 0, -1e9).astype("float32"))
                near(weights, b.detach(), 1e-5)
        (expected.logits * torch.tensor(pull)).sum().backward()
        check_gradients(tape, loss, named_gradients(ours, theirs))
    save_model(ours, tmp_path / "ours")
    again, loading = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    with torch.no_grad():
        saved = run(again.eval(), inputs).logits
    near(saved, expected.logits.detach(), 1e-5 * scale)
    loaded = load_model(tmp_path / "ours", "sequence_to_sequence")
    near(loaded(inputs)["logits"], saved, 1e-5 * scale)
    settings = again.generation_config
    assert settings.bad_words_ids == [[PAD]] and settings.forced_eos_token_id == 0
    assert settings.renormalize_logits
    assert (settings.decoder_start_token_id, settings.num_beams) == (PAD, 4)


def test_old_files_hold_their_table_under_all_names(tmp_path):
    reference("marian", tmp_path)
    inputs = make_inputs(9, 6, masked=True)
    expected = load_model(tmp_path, "sequence_to_sequence")(inputs)["logits"]
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    table = tensors["model.shared.weight"]
    rows = np.zeros((600, 24), "float32")
    for side in ("encoder", "decoder"):
        tensors |= {f"model.{side}.embed_tokens.weight": table}
        tensors |= {f"model.{side}.embed_positions.weight": rows}
    save_file(tensors | {"lm_head.weight": table}, path, {"format": "pt"})
    near(load_model(tmp_path, "sequence_to_sequence")(inputs)["logits"], expected, 0)
    del tensors["model.decoder.layers.2.fc2.bias"]
    save_file(tensors, path, {"format": "pt"})
    with pytest.raises(InputError, match=r"lacks the tensor model\.decoder\.layers\.2\.fc2\.bias"):
        load_model(tmp_path, "sequence_to_sequence")


def test_config_of_a_released_model(tmp_path):
    """The fields that the folders of opus-mt have, of which many have no effect any more."""
    reference("marian", tmp_path)
    path = tmp_path / "config.json"
    fields = json.loads(path.read_text())
    old = {
        **{"add_bias_logits": False, "add_final_layer_norm": False, "classif_dropout": 0.0},
        **{"normalize_before": False, "normalize_embedding": False, "bad_words_ids": [[PAD]]},
        **{"static_position_embeddings": True, "num_beams": 6, "max_length": 512},
        **{"forced_eos_token_id": 0, "num_hidden_layers": 2, "_num_labels": 3},
        **{"gradient_checkpointing": False, "bos_token_id": 0, "classifier_dropout": 0.0},
    }
    path.write_text(json.dumps(fields | old))
    ours = load_model(tmp_path, "sequence_to_sequence")
    path.write_text(json.dumps(fields))
    assert ours.text_config == load_model(tmp_path, "sequence_to_sequence").text_config
    config = ours.text_config
    assert (config.num_layers, config.num_decoder_layers, config.num_heads) == (2, 3, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_length": None}, "max_length=None cannot be saved"),
        ({"share_embeddings": False, "norm_first": True}, "no field for share_embeddings=False"),
        ({"tie_embeddings": False}, "no field for share_embeddings=True"),
    ],
)
def test_fields_that_their_config_lacks_are_refused(changes, message, tmp_path):
    sizes = {"vocabulary_size": 20, "num_layers": 1, "num_heads": 2, "hidden_dim": 8}
    config = TransformerConfig(**sizes | {"intermediate_dim": 8, "max_length": 9} | changes)
    with pytest.raises(InputError, match=message):
        save_model(build_model(config, "sequence_to_sequence"), tmp_path)


@pytest.mark.parametrize("name", ["marian", "pegasus"])
def test_dropout_is_where_theirs_is(name, tmp_path, monkeypatch):
    stem, suffix, fields = CASES[name]
    rates = {"dropout": 0.15, "attention_dropout": 0.25, "activation_dropout": 0.2}
    monkeypatch.setitem(CASES, name, (stem, suffix, fields | rates))
    theirs = reference(name, tmp_path).train()
    ours = load_model(tmp_path, "sequence_to_sequence")
    inputs = {k: np.repeat(x[:1], 160, axis=0) for k, x in make_inputs(7, 5, False).items()}
    keras.utils.set_random_seed(0)
    constants = {k: tf.constant(x) for k, x in inputs.items()}
    forward = tf.function(lambda: ours(constants, training=True)["logits"])
    found = np.concatenate([forward().numpy() for _ in range(10)])
    with torch.no_grad():
        expected = np.concatenate([run(theirs, inputs).logits.numpy() for _ in range(10)])
    assert found.var(axis=0).mean() == pytest.approx(expected.var(axis=0).mean(), rel=0.03)
