"""Every family against `transformers` on the same weights: outputs, scores, gradients, files."""

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from tests.parity.compare import check_gradients, near
from tfnlp.checkpoints import load_model, map_of, save_model
from tfnlp.checkpoints.tensors import write_tensors
from tfnlp.models import build_model
from tfnlp.utils.errors import InputError

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

V = 60
COMMON = {"vocab_size": V, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
COMMON |= {"intermediate_size": 40, "max_position_embeddings": 140, "initializer_range": 0.3}
DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SIZES = {"vocab_size": V, "initializer_range": 0.3}
GPT = SIZES | {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 140, "pad_token_id": 0}
GPT |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
DISTILBERT = SIZES | {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40}
DISTILBERT |= {"max_position_embeddings": 140, "dropout": 0.0, "attention_dropout": 0.0}
DISTILBERT |= {"seq_classif_dropout": 0.0, "qa_dropout": 0.0}
XLNET = SIZES | {"d_model": 24, "n_layer": 2, "n_head": 3, "d_inner": 40, "pad_token_id": 0}
XLNET |= {"dropout": 0.0, "summary_last_dropout": 0.0}
DEBERTA = COMMON | DROPOUT | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
DEBERTA |= {"type_vocab_size": 0, "position_biased_input": False, "max_relative_positions": 16}
V3 = DEBERTA | {"share_att_key": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm"}
# Rows for distances up to 33, beyond the largest one that their config tells.
ODD_BUCKETS = {"position_buckets": 7}
# Name: the stem of their classes and the fields of their config.
CASES = {
    "bert": ("Bert", COMMON | DROPOUT),
    "roberta": ("Roberta", COMMON | DROPOUT | {"type_vocab_size": 1, "pad_token_id": 1}),
    "xlm-roberta": ("XLMRoberta", COMMON | DROPOUT | {"type_vocab_size": 1, "pad_token_id": 1}),
    "distilbert": ("DistilBert", DISTILBERT),
    "albert": ("Albert", COMMON | DROPOUT | {"embedding_size": 8, "classifier_dropout_prob": 0.0}),
    "albert_groups": (
        "Albert",
        COMMON | DROPOUT | {"embedding_size": 24, "num_hidden_groups": 2, "hidden_act": "relu"},
    ),
    "electra": ("Electra", COMMON | DROPOUT | {"embedding_size": 8, "summary_last_dropout": 0.0}),
    "electra_wide": ("Electra", COMMON | DROPOUT | {"embedding_size": 24}),
    "deberta": ("Deberta", DEBERTA),
    "deberta_absolute": (
        "Deberta",
        DEBERTA | {"position_biased_input": True, "type_vocab_size": 2, "pos_att_type": "c2p"},
    ),
    "deberta_v2": ("DebertaV2", DEBERTA),
    "deberta_v2_xlarge": (
        "DebertaV2",
        V3 | ODD_BUCKETS | {"conv_kernel_size": 3, "conv_act": "gelu"},
    ),
    "deberta_v3": ("DebertaV2", V3),
    # More than two layers, for both kinds of attention, and texts longer than the bands.
    "modernbert": (
        "ModernBert",
        COMMON
        | {"num_hidden_layers": 4, "local_attention": 8, "pad_token_id": 0}
        | {"classifier_pooling": "mean"},
    ),
    "xlnet": ("XLNet", XLNET),
    "gpt": ("OpenAIGPT", GPT),
    "gpt2": ("GPT2", GPT),
}
# Cases of families that have another.
TWICE = ("albert_groups", "electra_wide", "deberta_absolute", "deberta_v2_xlarge", "deberta_v3")
HEADS = {
    "classifier": "ForSequenceClassification",
    "tagger": "ForTokenClassification",
    "answerer": "ForQuestionAnswering",
    "chooser": "ForMultipleChoice",
    "masked_lm": "ForMaskedLM",
    "causal_lm": "LMHeadModel",
    "discriminator": "ForPreTraining",
    "pretraining": "ForPreTraining",
}
# What `transformers` calls the outputs of those heads that have no `logits`.
OUTPUTS = {
    "answerer": {key: key for key in ("start_logits", "end_logits")},
    "bert-pretraining": {"logits": "prediction_logits", "pair_logits": "seq_relationship_logits"},
    "albert-pretraining": {"logits": "prediction_logits", "pair_logits": "sop_logits"},
}


def reference(folder, name, suffix="Model", num_labels=3, **more_fields):
    """A small random model of `transformers`, saved to a folder."""
    torch.manual_seed(0)
    stem, fields = CASES[name]
    labels = {"num_labels": num_labels} if "Classification" in suffix else {}
    config = getattr(transformers, f"{stem}Config")(
        **fields | more_fields, **labels, attn_implementation="eager"
    )
    model = getattr(transformers, stem + suffix)(config).eval()
    with torch.no_grad():
        # Biases and norms start at 0 and 1, which would hide a swapped name.
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    return model


def make_inputs(name, length, masked, batch=2):
    rng = np.random.default_rng(length)
    mask = np.ones((batch, length), "int32")
    if masked:
        # XLNet's texts are padded before them, so that the last state is of a real token.
        padded = slice(length // 2) if name == "xlnet" else slice((length + 1) // 2, None)
        mask[0, padded] = 0
    pad = CASES[name][1].get("pad_token_id", 0)
    return {
        "token_ids": np.where(mask, rng.integers(2, V, (batch, length)), pad).astype("int32"),
        "segment_ids": rng.integers(0, 2, (batch, length)).astype("int32"),
        "padding_mask": mask,
    }


def run_reference(model, name, inputs, **kwargs):
    ids = {k: torch.tensor(v).long() for k, v in inputs.items()}
    if name not in ("distilbert", "gpt", "gpt2", "roberta", "xlm-roberta", "modernbert"):
        kwargs["token_type_ids"] = ids["segment_ids"]
    return model(input_ids=ids["token_ids"], attention_mask=ids["padding_mask"], **kwargs)


@pytest.mark.parametrize("name", CASES)
def test_states_scores_and_gradients(name, tmp_path):
    theirs = reference(tmp_path, name)
    ours = load_model(tmp_path, hidden_states=True, attention_scores=True)
    for length, masked in ((1, False), (2, True), (7, True), (128, False), (128, True)):
        inputs = make_inputs(name, length, masked)
        real = inputs["padding_mask"][..., None]
        pull = np.random.default_rng(1).normal(size=(2, length, 24)).astype("float32") * real
        theirs.zero_grad()
        expected = run_reference(
            theirs, name, inputs, output_hidden_states=True, output_attentions=True
        )
        with tf.GradientTape() as tape:
            found = ours(inputs)
            loss = tf.reduce_sum(found["sequence_output"] * pull)
        for a, b in zip(found["hidden_states"], expected.hidden_states, strict=True):
            near(a * real, b.detach().numpy() * real, 1e-5 * max(1, float(b.abs().max())))
        seen = inputs["padding_mask"][:, None, None, :].astype(bool)
        if "gpt" in name:
            seen = seen & np.tri(length, dtype=bool)
        in_window = np.abs(np.arange(length)[:, None] - np.arange(length)) <= 4
        for i, (a, b) in enumerate(
            zip(found["attention_scores"], expected.attentions, strict=True)
        ):
            if name == "modernbert":
                seen = inputs["padding_mask"][:, None, None, :].astype(bool)
                seen = seen & in_window if i % 3 else seen
            weights = tf.nn.softmax(a + np.where(seen, 0, -1e9).astype("float32"))
            near(weights * real[:, None], b.detach().numpy() * real[:, None], 1e-5)
        (expected.last_hidden_state * torch.tensor(pull)).sum().backward()
        check_gradients(tape, loss, named_gradients(ours, theirs))


def named_gradients(ours, theirs):
    """(variable, the reference's gradient, transpose) for every variable of a model."""
    prefix = map_of(ours.text_config).prefix
    parameters = {name.removeprefix(prefix): p for name, p in theirs.named_parameters()}
    variables = {v.path: v for v in ours.trainable_variables}
    named = []
    for weight in weights_of(ours):
        gradient = parameters[weight.name].grad
        if gradient is None:  # the pooler, which the loss does not reach
            continue
        value = gradient.numpy()
        if weight.part:
            value = np.split(value, weight.part[1], axis=weight.part_axis)[weight.part[0]]
        shape = tuple(variables[weight.path].shape)
        if weight.transpose and weight.axes and len(shape) == 2:
            value = value.reshape(shape[::-1])
        value = value.T if weight.transpose else value.reshape(shape)
        named.append((variables[weight.path], value, False))
    assert len(named) >= len(variables) - 2
    return named


def cases_with_heads():
    for name, (stem, _) in CASES.items():
        for head, suffix in HEADS.items():
            if name == "xlnet" and head == "answerer":
                suffix += "Simple"
            if head == "discriminator" and stem != "Electra":
                continue
            if head == "pretraining" and stem not in ("Bert", "Albert"):
                continue
            if head == "causal_lm" and stem not in ("OpenAIGPT", "GPT2"):
                continue
            if name in TWICE and head != "masked_lm":  # whose output has the embeddings' width
                continue
            if hasattr(transformers, stem + suffix):
                yield pytest.param(name, head, suffix, id=f"{name}-{head}")


@pytest.mark.parametrize(("name", "head", "suffix"), cases_with_heads())
def test_heads_load_and_what_is_saved_loads_in_transformers(name, head, suffix, tmp_path):
    theirs = reference(tmp_path / "theirs", name, suffix)
    ours = load_model(tmp_path / "theirs", head)
    save_model(ours, tmp_path / "ours")
    again = type(theirs).from_pretrained(tmp_path / "ours", attn_implementation="eager").eval()
    expected_names = {k for k, _ in theirs.named_parameters()}
    loading = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)[1]
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    assert expected_names == {k for k, _ in again.named_parameters()}
    inputs = make_inputs(name, 9, masked=head != "chooser")
    if head == "chooser":
        inputs = {k: np.stack([v, v[:, ::-1], v], 1) for k, v in inputs.items()}
    with torch.no_grad():
        before = run_reference(theirs, name, inputs)
        after = run_reference(again, name, inputs)
    found = ours(inputs)
    keys = OUTPUTS.get(head) or OUTPUTS.get(f"{name.partition('_')[0]}-{head}")
    for own, key in (keys or {"logits": "logits"}).items():
        value = found[own].numpy()
        real = 1
        if value.ndim > 1 and value.shape[:2] == (2, 9):
            real = inputs["padding_mask"].reshape((2, 9) + (1,) * (value.ndim - 2))
        scale = max(1, float(getattr(before, key).abs().max()))
        near(value * real, getattr(before, key).numpy() * real, 1e-5 * scale)
        near(getattr(after, key).numpy(), getattr(before, key).numpy(), 1e-6 * scale)


def untied(monkeypatch, name):
    stem, fields = CASES[name]
    monkeypatch.setitem(CASES, name, (stem, fields | {"tie_word_embeddings": False}))


@pytest.mark.parametrize(
    ("name", "head", "suffix"),
    [("albert", "masked_lm", "ForMaskedLM"), ("gpt2", "causal_lm", "LMHeadModel")],
)
def test_outputs_of_their_own_load_and_save(name, head, suffix, tmp_path, monkeypatch):
    untied(monkeypatch, name)
    test_heads_load_and_what_is_saved_loads_in_transformers(name, head, suffix, tmp_path)
    saved = load_model(tmp_path / "ours", head)
    assert not saved.text_config.tie_embeddings
    # Without the output there is no half of a head.
    path = tmp_path / "ours" / "model.safetensors"
    tensors = load_file(path)
    output = next(w.name for w in weights_of(saved) if w.path == "lm_output/kernel")
    assert tensors.pop(output).shape == saved.get_layer("lm_output").kernel.shape[::-1]
    save_file(tensors, path)
    if head == "masked_lm":
        with pytest.raises(InputError, match=f"without the tensor {output}"):
            load_model(tmp_path / "ours", head)
    # A checkpoint of the encoder alone starts a new one.
    save_model(build_model(saved.text_config), tmp_path / "encoder")
    fresh = load_model(tmp_path / "encoder", head).get_layer("lm_output").kernel
    assert np.std(fresh) == pytest.approx(0.3, rel=0.1)


def weights_of(model):
    return map_of(model.text_config).weights(model).values()


def test_stored_output_that_is_not_the_table(tmp_path):
    """Where config.json says that it is tied, `transformers` 5 takes the stored one."""
    name, head, table = "bert", "masked_lm", "bert.embeddings.word_embeddings.weight"
    output, bias = (f"cls.predictions.decoder.{part}" for part in ("weight", "bias"))
    theirs = reference(tmp_path, name, "ForMaskedLM")
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    # Stored twice, they are tied all the same.
    save_file(tensors | {output: tensors[table]}, path, {"format": "pt"})
    assert load_model(tmp_path, head).text_config.tie_embeddings
    rng = np.random.default_rng(0)
    other = {output: rng.normal(size=tensors[table].shape).astype("float32")}
    other[bias] = rng.normal(size=V).astype("float32")
    save_file(tensors | other, path, {"format": "pt"})
    ours = load_model(tmp_path, head)
    assert not ours.text_config.tie_embeddings
    inputs = make_inputs(name, 9, masked=False)
    theirs = type(theirs).from_pretrained(tmp_path, attn_implementation="eager")
    expected = run_reference(theirs, name, inputs).logits.detach().numpy()
    near(ours(inputs)["logits"], expected, 1e-5 * np.abs(expected).max())


def test_untied_files_of_old_versions_have_one_bias(tmp_path, monkeypatch):
    untied(monkeypatch, "bert")
    reference(tmp_path, "bert", "ForMaskedLM")
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    del tensors["cls.predictions.decoder.bias"]
    save_file(tensors, path, {"format": "pt"})
    found = load_model(tmp_path, "masked_lm").get_layer("lm_bias").bias
    np.testing.assert_array_equal(found, tensors["cls.predictions.bias"])


def run_with_queries(encoder, states, queries, mask):
    """The last layer of an encoder of `transformers`, with other queries than its input."""
    layer = encoder.layer[-1]
    attention = layer.attention.self
    positions = (encoder.get_rel_pos(states), encoder.get_rel_embedding())
    if not hasattr(attention, "in_proj"):
        arguments = dict(zip(("relative_pos", "rel_embeddings"), positions, strict=True))
        return layer(states, mask, query_states=queries, **arguments)[0]
    # Their v1 fails with `query_states`: give it a joint projection whose queries are these.
    joint = attention.in_proj

    class Projection(torch.nn.Module):
        def forward(self, x):
            own, other = (joint(a).unflatten(-1, (3, 3, 8)) for a in (x, queries))
            return torch.cat([other[..., :1, :], own[..., 1:, :]], -2).flatten(-3)

    attention.in_proj = Projection()
    attended = attention(states, mask, False, None, *positions)[0]
    attention.in_proj = joint
    y = layer.attention.output(attended, queries)
    return layer.output(layer.intermediate(y), y)


@pytest.mark.parametrize("name", ["deberta", "deberta_v3"])
def test_enhanced_mask_decoder(name, tmp_path, monkeypatch):
    """Against the blocks of `transformers`, run as He et al. 2020 and their code say."""
    stem, fields = CASES[name]
    monkeypatch.setitem(CASES, name, (stem, fields | {"legacy": False}))
    theirs = reference(tmp_path / "theirs", name, "ForMaskedLM")
    positions = torch.nn.Parameter(0.5 * torch.randn(140, 24))
    tensors = {k: v.detach().numpy() for k, v in theirs.state_dict().items()}
    tensors["deberta.embeddings.position_embeddings.weight"] = positions.detach().numpy()
    write_tensors(tmp_path / "theirs" / "model.safetensors", tensors)
    ours = load_model(tmp_path / "theirs", "masked_lm")
    assert ours.text_config.enhanced_mask_decoder
    encoder = theirs.deberta.encoder
    for length, masked in ((7, True), (40, True), (128, False)):
        inputs = make_inputs(name, length, masked)
        real = inputs["padding_mask"][..., None]
        pull = np.random.default_rng(1).normal(size=(2, length, V)).astype("float32") * real
        states = run_reference(theirs.deberta, name, inputs, output_hidden_states=True)
        states = states.hidden_states[-2]
        mask = encoder.get_attention_mask(torch.tensor(inputs["padding_mask"]))
        x = states + positions[:length]
        for _ in range(2):
            x = run_with_queries(encoder, states, x, mask)
        expected = theirs.lm_predictions(x, theirs.deberta.embeddings.word_embeddings)
        theirs.zero_grad()
        positions.grad = None
        (expected * torch.tensor(pull)).sum().backward()
        with tf.GradientTape() as tape:
            found = ours(inputs)["logits"]
            loss = tf.reduce_sum(found * pull)
        scale = max(1, expected.abs().max().item())
        near(found * real, expected.detach().numpy() * real, 1e-5 * scale)
        parameters = dict(theirs.named_parameters())
        variables = {v.path: v for v in ours.trainable_variables}
        named = []
        for weight in weights_of(ours):
            if weight.path.startswith("decoder_positions"):
                gradient = positions.grad.numpy()
            else:
                prefix = "" if weight.head else "deberta."
                gradient = parameters[prefix + weight.name].grad.numpy()
            gradient = gradient.T if weight.transpose else gradient
            named.append((variables[weight.path], gradient, False))
        assert len(named) == len(variables)
        check_gradients(tape, loss, named)
    save_model(ours, tmp_path / "ours")
    again = load_model(tmp_path / "ours", "masked_lm")
    near(again(inputs)["logits"], found, 1e-6)
    # The other heads do not need the positions, nor mind them.
    assert load_model(tmp_path / "ours", "tagger", num_classes=3)


@pytest.mark.parametrize(("sizes", "streams"), [((None, None), 1), ((9, 5), 2)])
def test_memory_of_xlnet(sizes, streams, tmp_path, monkeypatch):
    stem, fields = CASES["xlnet"]
    further = {"mem_len": sizes[0], "reuse_len": sizes[1], "clamp_len": 4 if streams == 2 else -1}
    monkeypatch.setitem(CASES, "xlnet", (stem, fields | further))
    theirs = reference(tmp_path / "theirs", "xlnet", "LMHeadModel" if streams == 2 else "Model")
    head = "permutation_lm" if streams == 2 else None
    ours = load_model(
        tmp_path / "theirs", head, hidden_states=True, attention_scores=True, memory=True
    )
    assert (ours.text_config.memory_length, ours.text_config.reuse_length) == sizes
    found = {"memory": np.zeros((2, 2, 0, 24), "float32")}
    mems, kwargs, extra = None, {"output_hidden_states": True}, {}
    for length in (7, 3, 6):
        inputs = make_inputs("xlnet", length, masked=length == 6)
        if streams == 2:
            rng = np.random.default_rng(length)
            order = np.stack([rng.permutation(length) for _ in range(2)])
            mapping = np.eye(length, dtype="int32")[np.argsort(order)[:, [2, 1]]]
            extra = {"permutation_order": order, "target_mapping": mapping}
            hidden = order[:, None, :] >= order[:, :, None]
            kwargs["perm_mask"] = torch.tensor(hidden).float()
            kwargs["target_mapping"] = torch.tensor(mapping).float()
        theirs.zero_grad()
        expected = run_reference(theirs, "xlnet", inputs, mems=mems, **kwargs)
        key = "logits" if streams == 2 else "last_hidden_state"
        pull = np.random.default_rng(1).normal(size=expected[key].shape).astype("float32")
        pull *= 1 if streams == 2 else inputs["padding_mask"][..., None]
        (expected[key] * torch.tensor(pull)).sum().backward()
        with tf.GradientTape() as tape:
            found = ours(inputs | extra | {"memory": np.asarray(found["memory"])})
            loss = tf.reduce_sum(found["logits" if streams == 2 else "sequence_output"] * pull)
        check_gradients(tape, loss, named_gradients(ours, theirs))
        mems = expected.mems
        if length != 6:  # the states of padding are of no use, and differ
            near(found["memory"], torch.stack(mems).permute(2, 0, 1, 3).numpy(), 1e-5)
        real = 1 if streams == 2 else inputs["padding_mask"][..., None]
        states = expected.hidden_states[1::2] if streams == 2 else expected.hidden_states
        for a, b in zip(found["hidden_states"], states, strict=True):
            near(a * real, b.detach().numpy() * real, 1e-5)
        if streams == 2:
            scale = float(expected.logits.detach().abs().max())
            near(found["logits"], expected.logits.detach().numpy(), 1e-5 * scale)
    assert found["memory"].shape[2] == (9 if sizes[0] else 16)
    save_model(ours, tmp_path / "ours")
    loaded = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not loaded[1]["missing_keys"] and not loaded[1]["unexpected_keys"]


@pytest.mark.parametrize("name", CASES)
def test_config_comes_back(name, tmp_path):
    theirs = reference(tmp_path / "theirs", name)
    ours = load_model(tmp_path / "theirs")
    save_model(ours, tmp_path / "ours")
    assert load_model(tmp_path / "ours").text_config == ours.text_config
    again = type(theirs.config).from_pretrained(tmp_path / "ours").to_dict()
    for key, value in theirs.config.to_dict().items():
        free = ("architectures", "dtype", "id2label", "label2id", "transformers_version", "_name")
        if key.startswith(free) or key.endswith("dropout") or key == "mem_len":
            continue
        assert again[key] == value or (key == "pos_att_type" and list(again[key]) == [value]), key


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_sharded_files(dtype, tmp_path):
    theirs = reference(tmp_path / "whole", "gpt2").to(dtype)
    theirs.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    ours = load_model(tmp_path)
    expected = {k: v.float().numpy() for k, v in theirs.state_dict().items()}
    found = {v.path: v.numpy() for v in ours.weights}
    np.testing.assert_array_equal(found["embeddings/token_table"], expected["wte.weight"])
    joined = expected["h.1.attn.c_attn.weight"]
    np.testing.assert_array_equal(found["encoder_1/attention/key/kernel"], joined[:, 24:48])
