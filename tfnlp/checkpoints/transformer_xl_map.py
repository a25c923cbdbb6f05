"""Mapping of Transformer-XL between tfnlp and Hugging Face, which had it up to release 4.35."""

from tfnlp.checkpoints.family import (
    COMMON_FIXED,
    COMMON_HARMLESS,
    Family,
    Weight,
    because,
    check_only,
    dense,
    norm,
    token_heads,
)
from tfnlp.configs import TransformerXLConfig
from tfnlp.utils.errors import InputError

FIELDS = {
    "vocab_size": "vocabulary_size",
    "n_layer": "num_layers",
    "n_head": "num_heads",
    "d_model": "hidden_dim",
    "d_inner": "intermediate_dim",
    "dropout": "dropout",
    "dropatt": "attention_dropout",
    "layer_norm_epsilon": "layer_norm_epsilon",
    "init_std": "initializer_range",
    "pad_token_id": "pad_token_id",
    "cutoffs": "cutoffs",
    "d_embed": "embedding_dim",
    "div_val": "div_value",
    "proj_share_all_but_first": "tie_projections",
    "mem_len": "memory_length",
    "clamp_len": "clamp_length",
    "same_length": "same_length",
    "tie_word_embeddings": "tie_embeddings",
}


def weights(config, head):
    clusters = range(len(config.cutoffs) + 1)
    projected = config.div_value != 1 or config.embedding_dim not in (None, config.hidden_dim)
    for i in clusters:
        yield Weight(f"embeddings/table_{i}", f"word_emb.emb_layers.{i}.weight")
        if projected:
            name = f"word_emb.emb_projs.{i}"
            yield Weight(f"embeddings/projection_{i}", name, transpose=True)
    biases = {"content_bias": "r_w_bias", "position_bias": "r_r_bias"}
    if config.share_biases:
        for part, name in biases.items():
            yield Weight(f"biases/{part}", name)
    for i in range(config.num_layers):
        ours, theirs = f"encoder_{i}/attention", f"layers.{i}.dec_attn"
        for k, part in enumerate(("query", "key", "value")):
            name = f"{theirs}.qkv_net.weight"
            yield Weight(f"{ours}/{part}/kernel", name, transpose=True, part=(k, 3))
        yield Weight(f"{ours}/position/kernel", f"{theirs}.r_net.weight", transpose=True)
        yield Weight(f"{ours}/output/kernel", f"{theirs}.o_net.weight", transpose=True)
        if not config.share_biases:
            for part, name in biases.items():
                yield Weight(f"{ours}/{part}", f"{theirs}.{name}")
        yield from norm(f"encoder_{i}/attention_norm", f"{theirs}.layer_norm")
        ours, theirs = f"encoder_{i}/feed_forward", f"layers.{i}.pos_ff"
        yield from dense(f"{ours}/intermediate", f"{theirs}.CoreNet.0")
        yield from dense(f"{ours}/output", f"{theirs}.CoreNet.3")
        yield from norm(f"{ours}_norm", f"{theirs}.layer_norm")
    if head == "classifier":
        yield Weight("classifier/kernel", "score.weight", transpose=True, head=True)
    yield from token_heads(head)
    if head == "causal_lm":
        yield from _softmax(config, clusters, projected)


def _softmax(config, clusters, projected):
    for i in clusters:
        yield Weight(f"lm_softmax/bias_{i}", f"crit.out_layers.{i}.bias", head=True)
        if not config.tie_embeddings:
            yield Weight(f"lm_softmax/table_{i}", f"crit.out_layers.{i}.weight", head=True)
        if projected and (i == 0 or not config.tie_projections):
            path = f"lm_softmax/projection_{i}"
            yield Weight(path, f"crit.out_projs.{i}", transpose=True, head=True)
    if config.cutoffs:
        yield Weight("lm_softmax/cluster_kernel", "crit.cluster_weight", head=True)
        yield Weight("lm_softmax/cluster_bias", "crit.cluster_bias", head=True)


def _decode(ours, fields):
    clamp = ours.get("clamp_length", 1000)
    ours = ours | {"cutoffs": tuple(ours.get("cutoffs", TransformerXLConfig.cutoffs))}
    if ours["cutoffs"] and ours.get("div_value") == 1:
        raise InputError(
            f"cutoffs={list(ours['cutoffs'])} with div_val=1 are not supported; give cutoffs=[] "
            "or a div_val of at least 2."
        )
    check_only(fields, "d_head", ours.get("hidden_dim", 1024) // ours.get("num_heads", 16))
    ties = [False] + [ours.get("tie_projections", True)] * len(ours["cutoffs"])
    check_only(fields, "tie_projs", ties)
    return ours | {
        "clamp_length": clamp if clamp > 0 else None,
        "memory_length": ours.get("memory_length", 1600) or None,
        "share_biases": not fields["untie_r"],
    }


def _encode(theirs, config):
    return theirs | {
        "d_embed": config.embedding_dim or config.hidden_dim,
        "d_head": config.hidden_dim // config.num_heads,
        "cutoffs": list(config.cutoffs),
        "tie_projs": [False] + [config.tie_projections] * len(config.cutoffs),
        "clamp_len": config.clamp_length or -1,
        "mem_len": config.memory_length or 0,
        "untie_r": not config.share_biases,
    }


TRANSFORMER_XL = Family(
    model_type="transfo-xl",
    config=TransformerXLConfig,
    prefix="transformer.",
    fields=FIELDS,
    weights=weights,
    architectures={
        None: "TransfoXLModel",
        "classifier": "TransfoXLForSequenceClassification",
        "causal_lm": "TransfoXLLMHeadModel",
    },
    fixed=COMMON_FIXED
    | {"attn_type": 0, "pre_lnorm": False, "sample_softmax": -1, "tie_weight": True},
    harmless=COMMON_HARMLESS
    | because(
        "how fresh weights are drawn, which the stored ones replace",
        *("init", "init_range", "proj_init_std"),
    )
    | because("whether the loss is summed", "trainer_compatible")
    | because(
        "of the first release's training; no code reads it", "ext_len", "tgt_len", "adaptive"
    ),
    aliases={
        "n_token": "vocab_size",
        "hidden_size": "d_model",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    defaults={"d_head": 64, "untie_r": True, "tie_projs": None},
    decode=_decode,
    encode=_encode,
)
