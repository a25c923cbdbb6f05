"""Every field of every family's config in `transformers`, set to another value.

What then loads equals the reference, or the field is refused by its name. A field that is called
harmless leaves the reference as it was, in training too; so the load need not be looked at.
"""

import dataclasses
import importlib
import inspect
import json
import re

import numpy as np
import pytest

from tests.parity import test_families as families
from tests.parity.compare import near
from tests.parity.test_dropout import RATES
from tfnlp.checkpoints import load_model, save_model
from tfnlp.checkpoints.checkpoint_map import (
    ACTIVATION_NAMES,
    ACTIVATIONS,
    MAPS,
    read_fields,
    write_fields,
)
from tfnlp.functional.activations import get_activation
from tfnlp.models import HEADS
from tfnlp.utils.errors import InputError

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")
from huggingface_hub.errors import StrictDataclassError  # noqa: E402  after its importer

L = 6
SIDE = {"layers": 1, "attention_heads": 2, "ffn_dim": 20}
ENCODER_DECODER = {f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in SIDE.items()}
ENCODER_DECODER |= {"vocab_size": 40, "d_model": 16, "max_position_embeddings": 24}
ENCODER_DECODER |= {"init_std": 0.2, "pad_token_id": 39, "decoder_start_token_id": 38}
ENCODER_DECODER |= {"eos_token_id": 0}
# model_type: the stem of their classes and the fields that all start from.
CASES = {
    **{kind: families.CASES[kind] for kind in ("bert", "distilbert", "albert")},
    **{kind: families.CASES[kind] for kind in ("electra", "deberta", "modernbert")},
    **{kind: families.CASES[kind] for kind in ("xlnet", "gpt2")},
    "roberta": ("Roberta", families.CASES["bert"][1]),
    "xlm-roberta": ("XLMRoberta", families.CASES["bert"][1]),
    "deberta-v2": families.CASES["deberta_v2_xlarge"],
    "openai-gpt": families.CASES["gpt"],
    "marian": ("Marian", ENCODER_DECODER),
    "pegasus": ("Pegasus", ENCODER_DECODER),
}
# The other value of a field.
VALUES = {
    "vocab_size": 63,
    **dict.fromkeys(("hidden_size", "d_model", "dim", "n_embd"), 36),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers"), 3),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads"), 4),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "d_inner", "n_inner"), 28),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 30),
    **dict.fromkeys(("hidden_act", "activation", "afn", "ff_activation"), "relu"),
    **dict.fromkeys(("activation_function", "conv_act", "pooler_hidden_act"), "relu"),
    **dict.fromkeys(("layer_norm_eps", "layer_norm_epsilon"), 0.2),
    "initializer_range": 0.25,
    "type_vocab_size": 3,
    "pad_token_id": 1,
    "tie_word_embeddings": False,
    "embedding_size": 12,
    "num_hidden_groups": 2,
    "inner_group_num": 2,
    # Dropout
    **dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout"), 0.3),
    **dict.fromkeys(("attention_dropout", "seq_classif_dropout", "qa_dropout"), 0.3),
    **dict.fromkeys(("classifier_dropout", "classifier_dropout_prob", "cls_dropout"), 0.3),
    **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop", "hidden_dropout"), 0.3),
    **dict.fromkeys(("summary_first_dropout", "summary_last_dropout", "pooler_dropout"), 0.3),
    # DeBERTa
    "relative_attention": False,
    "pos_att_type": ["c2p"],
    "max_relative_positions": 9,
    "position_biased_input": False,
    "position_buckets": 3,
    "share_att_key": False,
    "norm_rel_ebd": "none",
    "conv_kernel_size": 5,
    "conv_groups": 2,
    "attention_head_size": 4,
    "pooler_hidden_size": 8,
    "talking_head": True,
    "legacy": False,
    # XLNet
    "d_head": 4,
    "attn_type": "uni",
    "bi_data": True,
    "clamp_len": 2,
    "mem_len": 3,
    "reuse_len": 2,
    "same_length": True,
    **dict.fromkeys(("use_mems_eval", "use_cache", "return_dict", "scale_attn_weights"), False),
    **dict.fromkeys(("use_mems_train", "is_decoder", "add_cross_attention"), True),
    **dict.fromkeys(("start_n_top", "end_n_top"), 3),
    "summary_type": "mean",
    "summary_use_proj": False,
    "summary_activation": "relu",
    # GPT
    **dict.fromkeys(("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"), True),
    # ModernBERT
    **dict.fromkeys(("hidden_activation", "classifier_activation"), "relu"),
    **dict.fromkeys(("embedding_dropout", "mlp_dropout"), 0.3),
    **dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"), True),
    **dict.fromkeys(("sparse_prediction", "deterministic_flash_attn"), True),
    "decoder_bias": False,
    "head_dim": 4,
    "norm_eps": 0.2,
    "local_attention": 3,
    "classifier_pooling": "cls",
    "layer_types": ["full_attention", "sliding_attention"] * 2,
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 50.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
    },
    "sparse_pred_ignore_index": -1,
    "initializer_cutoff_factor": 1.0,
    **dict.fromkeys(("cls_token_id", "sep_token_id"), 5),
    # DistilBERT
    "sinusoidal_pos_embds": True,
    # Marian and Pegasus
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 28),
    **dict.fromkeys(("encoder_layerdrop", "decoder_layerdrop", "activation_dropout"), 0.3),
    "init_std": 0.25,
    "scale_embedding": True,
    "share_encoder_decoder_embeddings": False,
    "decoder_vocab_size": 41,
    "decoder_start_token_id": 7,
    "forced_eos_token_id": 5,
    # Any
    "is_encoder_decoder": True,
    **dict.fromkeys(("output_hidden_states", "output_attentions"), True),
    "chunk_size_feed_forward": 1,
    "problem_type": "regression",
    "bos_token_id": 3,
    "eos_token_id": 4,
    "id2label": {"0": "x", "1": "y"},
    "label2id": {"x": 0, "y": 1},
    "dtype": "float16",
    "transformers_version": "5.0.0",
    "_name_or_path": "elsewhere",
    "model_type": "gpt9",
}
OWN_VALUES = {
    **{(kind, "is_encoder_decoder"): False for kind in ("marian", "pegasus")},
    ("electra", "summary_type"): "last",
    ("gpt2", "summary_proj_to_labels"): False,
    ("openai-gpt", "summary_proj_to_labels"): False,
    ("electra", "summary_proj_to_labels"): True,
    ("xlnet", "summary_proj_to_labels"): True,
    ("roberta", "pad_token_id"): 2,
    **dict.fromkeys((("albert", "num_hidden_layers"), ("deberta-v2", "num_hidden_layers")), 4),
    ("modernbert", "num_hidden_layers"): 4,
    ("modernbert", "hidden_size"): 48,  # of even parts
}
# What the code of the models names beside the fields of a config.
NOT_FIELDS = {"_attn_implementation", "num_labels", "architectures"}
# Fields that switch off what others do, each changed alone; and the heads that they touch.
ALONE = {
    "tie_word_embeddings": ("masked_lm", "causal_lm", "permutation_lm", "sequence_to_sequence"),
    "legacy": ("masked_lm",),
    "share_att_key": (None,),
    "norm_rel_ebd": (None,),
}
# Values that `transformers` does not run with, though its config takes them.
NOT_RUN = {(kind, "return_dict") for kind in ("gpt2", "marian", "modernbert", "pegasus")}


def heads_of(kind):
    """Each head of a family, and the class of `transformers` that has it."""
    for head, name in MAPS[kind].architectures.items():
        if hasattr(transformers, name):
            yield head, getattr(transformers, name)


def config_of(kind, changes):
    stem, fields = CASES[kind]
    make = getattr(transformers, f"{stem}Config")
    return make(**fields | changes, attn_implementation="eager")


def fields_of(kind):
    """The fields of a family's class, and those that its code asks for besides."""
    stem, _ = CASES[kind]
    config = getattr(transformers, f"{stem}Config")()
    module = importlib.import_module(type(config).__module__.replace("configuration", "modeling"))
    code = inspect.getsource(module)
    asked = re.findall(r'(?:get|has)attr\((?:self\.)?config, "(\w+)"', code)
    # BERT's code and its copies ask for an embedding_size where heads do not fit.
    asked = [name for name in asked if name != "embedding_size" or "Deberta" in stem]
    return (set(config.to_dict()) | set(asked)) - NOT_FIELDS


def json_of(kind, changes):
    """The config.json of a changed config; where `transformers` takes none, by hand."""
    try:
        fields = config_of(kind, changes).to_dict()
    except StrictDataclassError:
        fields = config_of(kind, {}).to_dict() | changes
    return json.loads(json.dumps(fields | changes))


def make_inputs(kind, head, pad):
    rng = np.random.default_rng(0)
    mask = np.ones((2, L), "int32")
    if kind in ("marian", "pegasus"):
        mask[0, -2:] = 0
        return {
            "encoder_token_ids": np.where(mask, rng.integers(5, 38, (2, L)), pad).astype("int32"),
            "encoder_padding_mask": mask,
            "decoder_token_ids": rng.integers(5, 38, (2, L - 1)).astype("int32"),
        }
    if head != "chooser":
        mask[0, :2] = 0 if kind == "xlnet" else 1
        mask[0, -2:] = 1 if kind == "xlnet" else 0
    inputs = {
        "token_ids": np.where(mask, rng.integers(5, families.V, (2, L)), pad).astype("int32"),
        "segment_ids": rng.integers(0, 2, (2, L)).astype("int32"),
        "padding_mask": mask,
    }
    if head == "chooser":
        inputs = {key: np.stack([x, x[:, ::-1]], 1) for key, x in inputs.items()}
    if head == "permutation_lm":
        inputs["permutation_order"] = np.array([[3, 1, 5, 2, 4, 0], [0, 2, 1, 4, 5, 3]], "int32")
        # The first in the order sees nothing, which they have otherwise.
        inputs["target_mapping"] = np.eye(L, dtype="int32")[[[2, 4], [1, 3]]]
    return inputs


def run(model, kind, head, training=False):
    """The states or the logits of the reference: one array, or two of an answerer."""
    inputs = make_inputs(kind, head, model.config.pad_token_id)
    ids = {key: torch.tensor(x).long() for key, x in inputs.items()}
    if kind in ("marian", "pegasus"):
        torch.manual_seed(1)
        with torch.no_grad():
            return [model.train(training)(*ids.values())[0].numpy()]
    arguments = {"input_ids": ids["token_ids"], "attention_mask": ids["padding_mask"]}
    if kind not in ("distilbert", "openai-gpt", "gpt2", "modernbert"):
        arguments["token_type_ids"] = ids["segment_ids"]
    if head == "permutation_lm":
        order = ids["permutation_order"]
        arguments["perm_mask"] = (order[:, None, :] >= order[:, :, None]).float()
        arguments["target_mapping"] = ids["target_mapping"].float()
    torch.manual_seed(1)
    with torch.no_grad():
        found = model.train(training)(**arguments)
    pooled = head is None and getattr(found, "pooler_output", None) is not None
    return [found[i].numpy() for i in range(2 if head == "answerer" or pooled else 1)]


def real(kind, head, value):
    """Zeros where a position is padding."""
    if head in ("chooser", "permutation_lm") or value.shape[:2] != (2, L):
        return value
    mask = make_inputs(kind, head, 0)["padding_mask"]
    return value * mask.reshape((2, L) + (1,) * (value.ndim - 2))


def reference(kind, make, changes):
    torch.manual_seed(0)
    model = make(config_of(kind, changes))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def check_loads(kind, changes, folder, heads):
    """Asserts that a changed model, with each head, gives here what it gives there."""
    for head, make in heads_of(kind):
        if head not in heads:
            continue
        theirs = reference(kind, make, changes)
        theirs.save_pretrained(folder / str(head))
        ours = load_model(folder / str(head), head)
        found = ours(make_inputs(kind, head, theirs.config.pad_token_id))
        keys = {
            None: ("sequence_output", "pooled_output"),
            "answerer": ("start_logits", "end_logits"),
        }
        for key, b in zip(keys.get(head, ("logits",)), run(theirs, kind, head), strict=False):
            scale = max(1, np.abs(b).max())
            a = real(kind, head, found[key].numpy())
            near(a, real(kind, head, b), 1e-5 * scale)


def check_has_no_effect(kind, changes):
    """Asserts that the reference is as it was, dropped numbers in training included."""
    for head, make in heads_of(kind):
        before = reference(kind, make, {})
        after = make(config_of(kind, changes))
        names, others = ([n for n, _ in model.named_parameters()] for model in (before, after))
        assert names == others  # tied weights count once
        after.load_state_dict(before.state_dict())
        for training in (False, True):
            pairs = zip(
                run(before, kind, head, training), run(after, kind, head, training), strict=False
            )
            for a, b in pairs:
                near(a, b, 3e-6 * max(1, np.abs(a).max()))


@pytest.mark.parametrize("kind", CASES)
def test_every_field(kind, tmp_path):
    family = MAPS[kind]
    base, _ = read_fields(family, json_of(kind, {}), "config.json")
    harmless, effective, refused = {}, {}, set()
    for name in sorted(fields_of(kind)):
        value = OWN_VALUES[kind, name] if (kind, name) in OWN_VALUES else VALUES[name]
        if name == "model_type":  # `read_config` refuses it
            continue
        fields = json_of(kind, {name: value})
        try:
            config, unknown = read_fields(family, fields, "config.json")
        except InputError as e:
            assert any(f"{n}=" in str(e) for n in (name, family.fields.get(name)))
            refused.add(name)
            continue
        assert not unknown
        if name in family.harmless:
            assert config == base
            harmless[name] = value
        else:
            effective[name] = value
            assert "drop" not in name or name in RATES
    assert len(harmless) >= 8 and len(effective) >= 12 and len(refused) >= 1
    harmless = {k: v for k, v in harmless.items() if (kind, k) not in NOT_RUN}
    check_has_no_effect(kind, harmless)
    together = {name: value for name, value in effective.items() if name not in ALONE}
    check_loads(kind, together, tmp_path / "together", (None, *HEADS))
    for name in ALONE.keys() & effective:
        check_loads(kind, {name: effective[name]}, tmp_path / name, ALONE[name])


# Fields that fail together alone, and terms of positions that stand alone.
COMBINATIONS = [
    ("albert", {"embedding_size": 24}),
    ("electra", {"embedding_size": 24}),
    ("deberta", {"pos_att_type": []}),
    ("deberta-v2", {"pos_att_type": []}),
    ("deberta-v2", {"relative_attention": False, "pos_att_type": []}),
    ("deberta-v2", {"pos_att_type": [], "position_buckets": 9, "max_relative_positions": 3}),
    ("deberta-v2", {"position_buckets": 5, "max_relative_positions": 4}),
    ("deberta", {"pos_att_type": ["p2c"]}),
    ("deberta-v2", {"pos_att_type": ["p2c"]}),
]


@pytest.mark.parametrize(("kind", "changes"), COMBINATIONS)
def test_fields_together_load_and_save(kind, changes, tmp_path):
    check_loads(kind, changes, tmp_path, (None,))
    theirs = reference(kind, dict(heads_of(kind))[None], changes)
    ours = load_model(tmp_path / "None")
    save_model(ours, tmp_path / "saved")
    again, info = type(theirs).from_pretrained(
        tmp_path / "saved", output_loading_info=True, attn_implementation="eager"
    )
    assert not info["missing_keys"] and not info["unexpected_keys"]
    for a, b in zip(run(again, kind, None), run(theirs, kind, None), strict=True):
        near(real(kind, None, a), real(kind, None, b), 1e-6 * max(1, np.abs(b).max()))


@pytest.mark.parametrize("kind", CASES)
def test_fields_by_other_names_and_missing_fields(kind):
    family = MAPS[kind]
    make = getattr(transformers, f"{CASES[kind][0]}Config")
    assert family.aliases == make.attribute_map
    for name, theirs in make.attribute_map.items():
        fields = json.loads(json.dumps(make().to_dict()))
        fields.pop("d_head", None)  # it follows from others
        value = 32 if kind in ("xlnet", "marian", "pegasus") else 24  # where heads fit
        by_name, unknown = read_fields(family, fields | {theirs: value}, "config.json")
        assert read_fields(family, fields | {name: value}, "config.json")[0] == by_name
        assert not unknown and by_name != read_fields(family, fields, "config.json")[0]
    # A config.json without a field means their default.
    whole, _ = read_fields(family, make().to_dict(), "config.json")
    assert read_fields(family, {"model_type": kind}, "config.json")[0] == whole


# Where the defaults of `transformers` are another model's than the published base's.
SIZES = {"num_layers", "num_heads", "hidden_dim", "intermediate_dim"}
ROBERTA = {"max_length", "num_segments", "layer_norm_epsilon"}
DEBERTA = {"terms", "absolute_positions"}
OTHER_DEFAULTS = {
    **{"roberta": ROBERTA, "xlm-roberta": ROBERTA | {"vocabulary_size"}},
    "albert": SIZES - {"num_layers"},
    **{"deberta": DEBERTA, "deberta-v2": DEBERTA | SIZES | {"num_buckets", "normalize_positions"}},
    "xlnet": SIZES | {"memory_length"},
}


@pytest.mark.parametrize("kind", [kind for kind in CASES if kind not in ("marian", "pegasus")])
def test_defaults_are_those_of_transformers(kind):
    fields = getattr(transformers, f"{CASES[kind][0]}Config")().to_dict()
    theirs = dataclasses.asdict(read_fields(MAPS[kind], fields, "config.json")[0])
    ours = dataclasses.asdict(MAPS[kind].config())
    assert {k for k in ours if ours[k] != theirs[k]} == OTHER_DEFAULTS.get(kind, set())


@pytest.mark.parametrize("kind", [kind for kind in CASES if kind not in ("marian", "pegasus")])
def test_a_dropout_that_is_that_of_the_encoder_is_one_of_transformers(kind):
    family = MAPS[kind]
    config = family.config(dropout=0.25, classifier_dropout=None)
    written = write_fields(family, config)
    theirs = getattr(transformers, f"{CASES[kind][0]}Config")(**written).to_dict()
    assert read_fields(family, theirs, "config.json")[0].head_dropout == config.head_dropout


def test_activations_are_those_of_their_names():
    x = np.linspace(-6, 6, 121, dtype="float32")
    for name, ours in ACTIVATIONS.items():
        expected = transformers.activations.ACT2FN[name](torch.tensor(x)).numpy()
        # The exact GELU and that of the tanh are up to 5e-4 apart.
        near(get_activation(ours)(x), expected, 3e-6)
    for ours, name in ACTIVATION_NAMES.items():
        assert ACTIVATIONS[name] == ours
