"""Mapping of Transformer-XL between tfnlp and Hugging Face, which had it up to release 4.35."""

from tfnlp.checkpoints.checkpoint_map import (
    COMMON_FIXED,
    COMMON_HARMLESS,
    CheckpointMap,
    Weight,
    architectures,
    check_only,
    dense,
    heads,
    joint_kernels,
    kernel,
    norm,
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


ENCODER = (
    Weight("embeddings/table_{}", "word_emb.emb_layers.{}.weight"),
    Weight("embeddings/projection_{}", "word_emb.emb_projs.{}", transpose=True),
    Weight("biases/content_bias", "r_w_bias"),
    Weight("biases/position_bias", "r_r_bias"),
    *joint_kernels("encoder_{}/attention", "layers.{}.dec_attn.qkv_net"),
    kernel("encoder_{}/attention/position", "layers.{}.dec_attn.r_net"),
    kernel("encoder_{}/attention/output", "layers.{}.dec_attn.o_net"),
    Weight("encoder_{}/attention/content_bias", "layers.{}.dec_attn.r_w_bias"),
    Weight("encoder_{}/attention/position_bias", "layers.{}.dec_attn.r_r_bias"),
    *norm("encoder_{}/attention_norm", "layers.{}.dec_attn.layer_norm"),
    *dense("encoder_{}/feed_forward/intermediate", "layers.{}.pos_ff.CoreNet.0"),
    *dense("encoder_{}/feed_forward/output", "layers.{}.pos_ff.CoreNet.3"),
    *norm("encoder_{}/feed_forward_norm", "layers.{}.pos_ff.layer_norm"),
)
HEADS = heads(
    classifier=(kernel("classifier", "score"),),
    causal_lm=(
        Weight("lm_softmax/bias_{}", "crit.out_layers.{}.bias"),
        Weight("lm_softmax/table_{}", "crit.out_layers.{}.weight"),
        Weight("lm_softmax/projection_{}", "crit.out_projs.{}", transpose=True),
        Weight("lm_softmax/cluster_kernel", "crit.cluster_weight"),
        Weight("lm_softmax/cluster_bias", "crit.cluster_bias"),
    ),
)


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
        "d_head": config.key_dim,
        "cutoffs": list(config.cutoffs),
        "tie_projs": [False] + [config.tie_projections] * len(config.cutoffs),
        "clamp_len": config.clamp_length or -1,
        "mem_len": config.memory_length or 0,
        "untie_r": not config.share_biases,
    }


TRANSFORMER_XL = CheckpointMap(
    model_type="transfo-xl",
    config=TransformerXLConfig,
    prefix="transformer.",
    fields=FIELDS,
    encoder=ENCODER,
    heads=HEADS,
    architectures=architectures("TransfoXL", "classifier", causal_lm="TransfoXLLMHeadModel"),
    fixed=COMMON_FIXED
    | {"attn_type": 0, "pre_lnorm": False, "sample_softmax": -1, "tie_weight": True},
    harmless={
        *COMMON_HARMLESS,
        # They say how fresh weights are drawn, which the stored ones replace.
        *("init", "init_range", "proj_init_std"),
        # It says whether the loss is summed.
        "trainer_compatible",
        # They are of the first release's training; no code reads them.
        *("ext_len", "tgt_len", "adaptive"),
    },
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
