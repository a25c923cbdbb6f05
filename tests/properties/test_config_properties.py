"""What holds of every config of a family: the states of `transformers` on the same weights."""

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parity.compare import near
from tfnlp.checkpoints import load_model

pytest.importorskip("torch", reason="parity needs .[parity]")
test_families = pytest.importorskip("tests.parity.test_families")

# What the families call the fields that all have; each of BERT's else.
NAMES = {
    "distilbert": {"hidden_size": "dim", "num_hidden_layers": "n_layers"}
    | {"num_attention_heads": "n_heads", "intermediate_size": "hidden_dim"}
    | {"hidden_act": "activation", "layer_norm_eps": None},
    "modernbert": {"hidden_act": "hidden_activation", "layer_norm_eps": "norm_eps"},
    "xlnet": {
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layer",
        "hidden_act": "ff_activation",
    }
    | {"num_attention_heads": "n_head", "intermediate_size": "d_inner"},
    "gpt2": {
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "intermediate_size": "n_inner",
    }
    | {"num_attention_heads": "n_head", "hidden_act": "activation_function"}
    | {"layer_norm_eps": "layer_norm_epsilon"},
}
NAMES["gpt"] = NAMES["gpt2"] | {"hidden_act": "afn", "intermediate_size": None}
# Fields of their own.
TERMS = st.sampled_from([[], ["c2p"], ["p2c"], ["c2p", "p2c"]])
DEBERTA = {
    "pos_att_type": TERMS,
    "max_relative_positions": st.integers(8, 20),
    "position_biased_input": st.booleans(),
    "type_vocab_size": st.integers(0, 2),
}
FIELDS = {
    "bert": {"type_vocab_size": st.integers(2, 4)},
    "albert": {"embedding_size": st.integers(2, 12), "type_vocab_size": st.integers(2, 4)},
    "gpt": {"hidden_act": st.sampled_from(["gelu", "relu"])},  # its "gelu" is GPT-2's gelu_new
    "electra": {"embedding_size": st.integers(2, 12)},
    "deberta": DEBERTA,
    "deberta_v2": DEBERTA
    | {"share_att_key": st.booleans(), "position_buckets": st.sampled_from([-1, 4, 7])}
    | {"norm_rel_ebd": st.sampled_from(["none", "layer_norm"])}
    | {"conv_kernel_size": st.sampled_from([0, 3, 5])},
    "modernbert": {"local_attention": st.sampled_from([2, 6])}
    | {"global_attn_every_n_layers": st.integers(1, 3)},
}


def configs(family):
    """Strategy of the fields of a small config, beside those of the family's case."""
    heads = st.integers(1, 4)
    sizes = {
        # Norms of a narrower width enlarge what rounding leaves.
        "hidden_size": st.tuples(heads, st.sampled_from([8, 10, 12])),
        "num_hidden_layers": st.integers(1, 3),
        "intermediate_size": st.integers(1, 40),
        "hidden_act": st.sampled_from(["gelu", "relu", "gelu_new"]),
        "layer_norm_eps": st.sampled_from([1e-12, 1e-5, 1e-2]),
    }

    def named(fields):
        heads, size = fields.pop("hidden_size")
        fields |= {"num_attention_heads": heads, "hidden_size": heads * size}
        names = {name: NAMES.get(family, {}).get(name, name) for name in fields}
        return {names[name]: value for name, value in fields.items() if names[name]}

    return st.fixed_dictionaries(sizes | FIELDS.get(family, {})).map(named)


@pytest.mark.parametrize(
    "family", [n for n in test_families.CASES if n not in test_families.TWICE]
)
def test_states_are_those_of_transformers(family):
    @given(configs(family))
    @settings(max_examples=settings.default.max_examples // 10, deadline=None)
    def check(fields):
        with tempfile.TemporaryDirectory() as folder:
            theirs = test_families.reference(folder, family, **fields)
            ours = load_model(folder, hidden_states=True)
        inputs = test_families.make_inputs(family, 11, masked=True)
        kinds = getattr(theirs.config, "type_vocab_size", 2)
        inputs["segment_ids"] %= max(kinds, 1)
        expected = test_families.run_reference(theirs, family, inputs, output_hidden_states=True)
        real = inputs["padding_mask"][..., None]
        found = ours(inputs)["hidden_states"]
        for a, b in zip(found, expected.hidden_states, strict=True):
            near(a * real, b.detach().numpy() * real, 1e-5 * max(1, float(b.detach().abs().max())))

    check()
