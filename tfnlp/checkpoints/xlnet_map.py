"""Mapping of XLNet between tfnlp and Hugging Face."""

from tfnlp.checkpoints.family import (
    COMMON_FIXED,
    COMMON_HARMLESS,
    Family,
    Weight,
    because,
    check_only,
    dense,
    norm,
    output_table,
    token_heads,
)
from tfnlp.configs import XLNetConfig

FIELDS = {
    "vocab_size": "vocabulary_size",
    "n_layer": "num_layers",
    "n_head": "num_heads",
    "d_model": "hidden_dim",
    "d_inner": "intermediate_dim",
    "ff_activation": "activation",
    "dropout": "dropout",
    "summary_last_dropout": "classifier_dropout",
    "layer_norm_eps": "layer_norm_epsilon",
    "initializer_range": "initializer_range",
    "pad_token_id": "pad_token_id",
    "clamp_len": "clamp_length",
    "mem_len": "memory_length",
    "reuse_len": "reuse_length",
    "tie_word_embeddings": "tie_embeddings",
}
ARCHITECTURES = {
    None: "XLNetModel",
    "classifier": "XLNetForSequenceClassification",
    "tagger": "XLNetForTokenClassification",
    "answerer": "XLNetForQuestionAnsweringSimple",
    "chooser": "XLNetForMultipleChoice",
    "permutation_lm": "XLNetLMHeadModel",
}


def weights(config, head):
    size = config.hidden_dim // config.num_heads
    cube = (config.hidden_dim, config.num_heads, size)
    yield Weight("embeddings/token_table", "word_embedding.weight")
    yield Weight("embeddings/query_vector", "mask_emb")
    for i in range(config.num_layers):
        ours, theirs = f"encoder_{i}", f"layer.{i}"
        parts = {"query": "q", "key": "k", "value": "v", "position": "r"}
        for part, name in parts.items():
            path = f"{ours}/attention/{part}/kernel"
            yield Weight(path, f"{theirs}.rel_attn.{name}", shape=cube)
        path = f"{ours}/attention/output/kernel"
        yield Weight(path, f"{theirs}.rel_attn.o", transpose=True, shape=cube)
        tables = {
            "content_bias": "r_w_bias",
            "position_bias": "r_r_bias",
            "segment_bias": "r_s_bias",
            "segment_table": "seg_embed",
        }
        for part, name in tables.items():
            yield Weight(f"{ours}/attention/{part}", f"{theirs}.rel_attn.{name}")
        yield from norm(f"{ours}/attention_norm", f"{theirs}.rel_attn.layer_norm")
        yield from dense(f"{ours}/feed_forward/intermediate", f"{theirs}.ff.layer_1")
        yield from dense(f"{ours}/feed_forward/output", f"{theirs}.ff.layer_2")
        yield from norm(f"{ours}/feed_forward_norm", f"{theirs}.ff.layer_norm")
    if head in ("classifier", "chooser"):
        yield from dense("pooler", "sequence_summary.summary", head=True)
        yield from dense("classifier", "logits_proj", head=True)
    yield from token_heads(head)
    if head == "permutation_lm":
        yield from output_table(config, "lm_loss.weight")
        yield Weight("lm_bias/bias", "lm_loss.bias", head=True)


def _decode(ours, fields):
    check_only(fields, "d_head", fields["d_model"] // fields["n_head"])
    ours = ours | {"attention_dropout": ours.get("dropout", 0.1)}
    clamp = ours.get("clamp_length", -1)
    return ours | {
        "clamp_length": clamp if clamp > 0 else None,
        "memory_length": ours.get("memory_length") or None,
        "reuse_length": ours.get("reuse_length") or None,
    }


def _encode(theirs, config):
    return theirs | {"clamp_len": config.clamp_length or -1}


XLNET = Family(
    model_type="xlnet",
    config=XLNetConfig,
    prefix="transformer.",
    fields=FIELDS,
    weights=weights,
    architectures=ARCHITECTURES,
    # The summary is what classifiers and choosers start from.
    fixed=COMMON_FIXED
    | {
        "attn_type": "bi",
        "bi_data": False,
        "summary_type": "last",
        "summary_use_proj": True,
        "summary_activation": "tanh",
        "summary_first_dropout": 0,
        "summary_proj_to_labels": False,
    },
    harmless=COMMON_HARMLESS
    | because("of attn_type='uni' alone, which is refused", "same_length")
    | because("whether a memory is kept is an argument here", "use_mems_eval", "use_mems_train")
    | because("likewise, in old files", "use_mems")
    | because("of the beam search for answers, which tfnlp lacks", "start_n_top", "end_n_top")
    | because("the stored layers have biases of their own either way", "untie_r"),
    aliases={
        "n_token": "vocab_size",
        "hidden_size": "d_model",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    defaults={
        "d_model": 1024,
        "n_layer": 24,
        "n_head": 16,
        "d_inner": 4096,
        "mem_len": 512,
        "summary_last_dropout": 0.1,
        "d_head": None,
    },
    decode=_decode,
    encode=_encode,
)
