"""Mapping of XLNet between tfnlp and Hugging Face."""

from tfnlp.checkpoints.checkpoint_map import (
    COMMON_FIXED,
    COMMON_HARMLESS,
    CheckpointMap,
    Weight,
    architectures,
    check_only,
    dense,
    heads,
    kernel,
    norm,
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
ENCODER = (
    Weight("embeddings/token_table", "word_embedding.weight"),
    Weight("embeddings/query_vector", "mask_emb"),
    Weight("encoder_{}/attention/query/kernel", "layer.{}.rel_attn.q", axes="DNH"),
    Weight("encoder_{}/attention/key/kernel", "layer.{}.rel_attn.k", axes="DNH"),
    Weight("encoder_{}/attention/value/kernel", "layer.{}.rel_attn.v", axes="DNH"),
    Weight("encoder_{}/attention/position/kernel", "layer.{}.rel_attn.r", axes="DNH"),
    Weight(
        "encoder_{}/attention/output/kernel", "layer.{}.rel_attn.o", transpose=True, axes="DNH"
    ),
    Weight("encoder_{}/attention/content_bias", "layer.{}.rel_attn.r_w_bias"),
    Weight("encoder_{}/attention/position_bias", "layer.{}.rel_attn.r_r_bias"),
    Weight("encoder_{}/attention/segment_bias", "layer.{}.rel_attn.r_s_bias"),
    Weight("encoder_{}/attention/segment_table", "layer.{}.rel_attn.seg_embed"),
    *norm("encoder_{}/attention_norm", "layer.{}.rel_attn.layer_norm"),
    *dense("encoder_{}/feed_forward/intermediate", "layer.{}.ff.layer_1"),
    *dense("encoder_{}/feed_forward/output", "layer.{}.ff.layer_2"),
    *norm("encoder_{}/feed_forward_norm", "layer.{}.ff.layer_norm"),
)
POOLED = (*dense("pooler", "sequence_summary.summary"), *dense("classifier", "logits_proj"))
HEADS = heads(
    classifier=POOLED,
    chooser=POOLED,
    permutation_lm=(kernel("lm_output", "lm_loss"), Weight("lm_bias/bias", "lm_loss.bias")),
)


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


XLNET = CheckpointMap(
    model_type="xlnet",
    config=XLNetConfig,
    prefix="transformer.",
    fields=FIELDS,
    encoder=ENCODER,
    heads=HEADS,
    architectures=architectures(
        "XLNet",
        *("classifier", "tagger", "chooser"),
        answerer="XLNetForQuestionAnsweringSimple",
        permutation_lm="XLNetLMHeadModel",
    ),
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
    harmless={
        *COMMON_HARMLESS,
        # It is of attn_type='uni' alone, which is refused.
        "same_length",
        # Whether a memory is kept is an argument here.
        *("use_mems_eval", "use_mems_train", "use_mems"),
        # They are of the beam search for answers, which tfnlp lacks.
        *("start_n_top", "end_n_top"),
        # The stored layers have biases of their own either way.
        "untie_r",
    },
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
