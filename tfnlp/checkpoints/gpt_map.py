"""Mapping of GPT and GPT-2 between tfnlp and Hugging Face."""

from tfnlp.checkpoints.family import (
    COMMON_FIXED,
    COMMON_HARMLESS,
    Family,
    Weight,
    because,
    norm,
    output_table,
    token_heads,
)
from tfnlp.configs import Gpt2Config, GptConfig
from tfnlp.utils.errors import InputError

FIELDS = {
    "vocab_size": "vocabulary_size",
    "n_layer": "num_layers",
    "n_head": "num_heads",
    "n_embd": "hidden_dim",
    "n_positions": "max_length",
    "resid_pdrop": "dropout",
    "attn_pdrop": "attention_dropout",
    "embd_pdrop": "embedding_dropout",
    "layer_norm_epsilon": "layer_norm_epsilon",
    "initializer_range": "initializer_range",
    "pad_token_id": "pad_token_id",
    "tie_word_embeddings": "tie_embeddings",
}
ALIASES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
HARMLESS = (
    COMMON_HARMLESS
    | because(
        "of the model with two heads, which tfnlp lacks",
        *("summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels"),
        *("summary_first_dropout", "summary_last_dropout"),
    )
    | because("n_positions under an old name", "n_ctx")
)


def _weights(config, head, token_table, position_table):
    yield Weight("embeddings/token_table", f"{token_table}.weight")
    yield Weight("embeddings/position_table", f"{position_table}.weight")
    for i in range(config.num_layers):
        ours, theirs = f"encoder_{i}", f"h.{i}"
        for k, part in enumerate(("query", "key", "value")):
            for variable, name in (("kernel", "weight"), ("bias", "bias")):
                path = f"{ours}/attention/{part}/{variable}"
                yield Weight(path, f"{theirs}.attn.c_attn.{name}", part=(k, 3))
        yield from _dense(f"{ours}/attention/output", f"{theirs}.attn.c_proj")
        yield from norm(f"{ours}/attention_norm", f"{theirs}.ln_1")
        yield from _dense(f"{ours}/feed_forward/intermediate", f"{theirs}.mlp.c_fc")
        yield from _dense(f"{ours}/feed_forward/output", f"{theirs}.mlp.c_proj")
        yield from norm(f"{ours}/feed_forward_norm", f"{theirs}.ln_2")
    if head == "classifier":
        yield Weight("classifier/kernel", "score.weight", transpose=True, head=True)
    yield from token_heads(head)
    if head == "causal_lm":
        yield from output_table(config, "lm_head.weight")


def _dense(path, name):
    """Yield the kernel and bias of their Conv1D, whose kernel is (in, out) as in Keras."""
    yield Weight(f"{path}/kernel", f"{name}.weight")
    yield Weight(f"{path}/bias", f"{name}.bias")


def gpt_weights(config, head):
    yield from _weights(config, head, "tokens_embed", "positions_embed")


def gpt2_weights(config, head):
    yield from _weights(config, head, "wte", "wpe")
    yield from norm("final_norm", "ln_f")


def _decode(ours, fields):
    # Their GPT says "gelu" and computes the tanh one.
    activation = fields.get("afn", "gelu")
    activation = "gelu_new" if activation == "gelu" else activation
    width = 4 * ours.get("hidden_dim", GptConfig.hidden_dim)
    return ours | {"activation": activation, "intermediate_dim": width}


def _encode(theirs, config):
    if config.intermediate_dim != 4 * config.hidden_dim or config.activation == "gelu":
        raise InputError(
            f"A GPT of `transformers` has intermediate_dim=4 * hidden_dim and no exact GELU, but "
            f"this has {config.intermediate_dim} and activation={config.activation!r}."
        )
    activation = "gelu" if config.activation == "gelu_tanh" else config.activation
    return theirs | {"afn": activation}


def _decode_gpt2(ours, fields):
    width = fields.get("n_inner") or 4 * ours.get("hidden_dim", Gpt2Config.hidden_dim)
    return ours | {"intermediate_dim": width}


def _encode_gpt2(theirs, config):
    usual = config.intermediate_dim == 4 * config.hidden_dim
    return theirs | {"n_inner": None if usual else config.intermediate_dim}


GPT = Family(
    model_type="openai-gpt",
    config=GptConfig,
    prefix="transformer.",
    fields=FIELDS,
    weights=gpt_weights,
    architectures={
        None: "OpenAIGPTModel",
        "classifier": "OpenAIGPTForSequenceClassification",
        "causal_lm": "OpenAIGPTLMHeadModel",
    },
    harmless=HARMLESS
    | because("of the vocabulary, which vocab_size counts", "n_special", "predict_special_tokens"),
    aliases=ALIASES,
    defaults={"afn": "gelu"},
    decode=_decode,
    encode=_encode,
)
GPT2 = Family(
    model_type="gpt2",
    config=Gpt2Config,
    prefix="transformer.",
    fields=FIELDS
    | {"activation_function": "activation", "classifier_dropout": "classifier_dropout"},
    weights=gpt2_weights,
    architectures={
        None: "GPT2Model",
        "classifier": "GPT2ForSequenceClassification",
        "tagger": "GPT2ForTokenClassification",
        "answerer": "GPT2ForQuestionAnswering",
        "causal_lm": "GPT2LMHeadModel",
    },
    fixed=COMMON_FIXED
    | {
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        # A tagger's, where there is no classifier_dropout.
        "hidden_dropout": None,
    },
    harmless=HARMLESS
    | because("in what order the same products are scaled", "reorder_and_upcast_attn"),
    aliases=ALIASES,
    defaults={"n_inner": None},
    decode=_decode_gpt2,
    encode=_encode_gpt2,
)
