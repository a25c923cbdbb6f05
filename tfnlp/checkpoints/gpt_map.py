"""Mapping of GPT and GPT-2 between tfnlp and Hugging Face."""

from tfnlp.checkpoints.checkpoint_map import (
    COMMON_FIXED,
    COMMON_HARMLESS,
    CheckpointMap,
    Weight,
    architectures,
    heads,
    kernel,
    norm,
)
from tfnlp.configs import Gpt2Config, GptConfig

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
HARMLESS = {
    *COMMON_HARMLESS,
    # They are of the model with two heads, which tfnlp lacks.
    *("summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels"),
    *("summary_first_dropout", "summary_last_dropout"),
    # It is n_positions under an old name.
    "n_ctx",
}


def _conv(path, name, part=None):
    """Return the kernel and bias of their Conv1D, whose kernel is (in, out) as in Keras."""
    return (
        Weight(f"{path}/kernel", f"{name}.weight", part=part),
        Weight(f"{path}/bias", f"{name}.bias", part=part),
    )


LAYERS = (
    *_conv("encoder_{}/attention/query", "h.{}.attn.c_attn", part=(0, 3)),
    *_conv("encoder_{}/attention/key", "h.{}.attn.c_attn", part=(1, 3)),
    *_conv("encoder_{}/attention/value", "h.{}.attn.c_attn", part=(2, 3)),
    *_conv("encoder_{}/attention/output", "h.{}.attn.c_proj"),
    *norm("encoder_{}/attention_norm", "h.{}.ln_1"),
    *_conv("encoder_{}/feed_forward/intermediate", "h.{}.mlp.c_fc"),
    *_conv("encoder_{}/feed_forward/output", "h.{}.mlp.c_proj"),
    *norm("encoder_{}/feed_forward_norm", "h.{}.ln_2"),
)
HEADS = heads(
    classifier=(kernel("classifier", "score"),), causal_lm=(kernel("lm_output", "lm_head"),)
)


def _decode(ours, fields):
    # Their GPT says "gelu" and computes the tanh one.
    activation = fields.get("afn", "gelu")
    activation = "gelu_new" if activation == "gelu" else activation
    width = 4 * ours.get("hidden_dim", GptConfig.hidden_dim)
    return ours | {"activation": activation, "intermediate_dim": width}


def _encode(theirs, config):
    return theirs | {"afn": "gelu" if config.activation == "gelu_tanh" else config.activation}


def _decode_gpt2(ours, fields):
    width = fields.get("n_inner") or 4 * ours.get("hidden_dim", Gpt2Config.hidden_dim)
    return ours | {"intermediate_dim": width}


def _encode_gpt2(theirs, config):
    usual = config.intermediate_dim == 4 * config.hidden_dim
    return theirs | {"n_inner": None if usual else config.intermediate_dim}


GPT = CheckpointMap(
    model_type="openai-gpt",
    config=GptConfig,
    prefix="transformer.",
    fields=FIELDS,
    encoder=(
        Weight("embeddings/token_table", "tokens_embed.weight"),
        Weight("embeddings/position_table", "positions_embed.weight"),
        *LAYERS,
    ),
    heads=HEADS,
    architectures=architectures("OpenAIGPT", "classifier", causal_lm="OpenAIGPTLMHeadModel"),
    # They are of the vocabulary, which vocab_size counts.
    harmless={*HARMLESS, "n_special", "predict_special_tokens"},
    aliases=ALIASES,
    defaults={"afn": "gelu"},
    decode=_decode,
    encode=_encode,
)
GPT2 = CheckpointMap(
    model_type="gpt2",
    config=Gpt2Config,
    prefix="transformer.",
    fields=FIELDS
    | {"activation_function": "activation", "classifier_dropout": "classifier_dropout"},
    encoder=(
        Weight("embeddings/token_table", "wte.weight"),
        Weight("embeddings/position_table", "wpe.weight"),
        *LAYERS,
        *norm("final_norm", "ln_f"),
    ),
    heads=HEADS,
    architectures=architectures(
        "GPT2", "classifier", "tagger", "answerer", causal_lm="GPT2LMHeadModel"
    ),
    fixed=COMMON_FIXED
    | {
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        # A tagger's, where there is no classifier_dropout.
        "hidden_dropout": None,
    },
    # The same products are scaled, in another order.
    harmless={*HARMLESS, "reorder_and_upcast_attn"},
    aliases=ALIASES,
    defaults={"n_inner": None},
    decode=_decode_gpt2,
    encode=_encode_gpt2,
)
