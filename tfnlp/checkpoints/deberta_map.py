"""Mapping of DeBERTa v1, v2 and v3 between tfnlp and Hugging Face."""

import dataclasses

from tfnlp.checkpoints.bert_map import AFTER_ATTENTION, BERT_LM, EMBEDDINGS
from tfnlp.checkpoints.checkpoint_map import (
    COMMON_FIELDS,
    COMMON_FIXED,
    CheckpointMap,
    Weight,
    architectures,
    check_only,
    dense,
    heads,
    kernel,
    norm,
    of_head,
)
from tfnlp.configs import DebertaConfig, DebertaV2Config
from tfnlp.utils.errors import InputError

FIELDS = COMMON_FIELDS | {
    "max_relative_positions": "max_distance",
    "position_biased_input": "absolute_positions",
    "cls_dropout": "classifier_dropout",
    "enhanced_mask_decoder": "enhanced_mask_decoder",
}
V2_FIELDS = FIELDS | {
    "position_buckets": "num_buckets",
    "share_att_key": "share_att_key",
    "norm_rel_ebd": "normalize_positions",
    "conv_kernel_size": "convolution_size",
    "conv_groups": "convolution_groups",
    "conv_act": "convolution_activation",
}
# Class name in Microsoft's code.
DISCRIMINATOR = "ReplacedTokenDetectionModel"
POSITIONS = "embeddings.position_embeddings.weight"
FIXED = COMMON_FIXED | {"pooler_hidden_act": "gelu", "pooler_dropout": 0, "talking_head": False}
DEFAULTS = {
    "vocab_size": 50265,
    "type_vocab_size": 0,
    "max_relative_positions": -1,
    "position_biased_input": True,
    "relative_attention": False,
    "pos_att_type": (),
    "hidden_size": 768,
    "num_attention_heads": 12,
    "pooler_hidden_size": None,
    "embedding_size": None,
    "legacy": True,
}
V2_DEFAULTS = DEFAULTS | {
    "vocab_size": 128100,
    "hidden_size": 1536,
    "num_hidden_layers": 24,
    "num_attention_heads": 24,
    "intermediate_size": 6144,
    "position_buckets": -1,
    "share_att_key": False,
    "norm_rel_ebd": "none",
    "attention_head_size": None,
}


ENCODER = (
    *EMBEDDINGS,
    *AFTER_ATTENTION,
    Weight("relative_positions/table", "encoder.rel_embeddings.weight"),
    Weight("decoder_positions/position_table", POSITIONS),
)
V1_ENCODER = (
    *ENCODER,
    kernel("encoder_{}/attention/joint", "encoder.layer.{}.attention.self.in_proj"),
    Weight("encoder_{}/attention/query_bias", "encoder.layer.{}.attention.self.q_bias"),
    Weight("encoder_{}/attention/value_bias", "encoder.layer.{}.attention.self.v_bias"),
    kernel("encoder_{}/attention/position_key", "encoder.layer.{}.attention.self.pos_proj"),
    *dense("encoder_{}/attention/position_query", "encoder.layer.{}.attention.self.pos_q_proj"),
)
V2_ENCODER = (
    *ENCODER,
    *dense("encoder_{}/attention/query", "encoder.layer.{}.attention.self.query_proj"),
    *dense("encoder_{}/attention/key", "encoder.layer.{}.attention.self.key_proj"),
    *dense("encoder_{}/attention/value", "encoder.layer.{}.attention.self.value_proj"),
    *dense("encoder_{}/attention/position_key", "encoder.layer.{}.attention.self.pos_key_proj"),
    *dense(
        "encoder_{}/attention/position_query", "encoder.layer.{}.attention.self.pos_query_proj"
    ),
    *norm("relative_positions/norm", "encoder.LayerNorm"),
    Weight("convolution/convolution/kernel", "encoder.conv.conv.weight", transpose=True),
    Weight("convolution/convolution/bias", "encoder.conv.conv.bias"),
    *norm("convolution/norm", "encoder.conv.LayerNorm"),
)
# Names of Microsoft's own files; `transformers` lacks the discriminator.
MICROSOFT_LM = (
    *dense("lm_transform", "lm_predictions.lm_head.dense"),
    *norm("lm_norm", "lm_predictions.lm_head.LayerNorm"),
    Weight("lm_bias/bias", "lm_predictions.lm_head.bias"),
)
_MICROSOFT_NAMES = {weight.path: (weight.name,) for weight in MICROSOFT_LM}
POOLED = (*dense("pooler", "pooler.dense"), *dense("classifier", "classifier"))
HEADS = heads(
    classifier=POOLED,
    chooser=POOLED,
    masked_lm=tuple(
        dataclasses.replace(weight, other_names=_MICROSOFT_NAMES.get(weight.path, ()))
        for weight in BERT_LM
    ),
    discriminator=(
        *norm("discriminator_norm", "mask_predictions.LayerNorm"),
        *dense("discriminator_transform", "mask_predictions.dense"),
        *dense("discriminator", "mask_predictions.classifier"),
    ),
)


def _variant(config):
    return of_head(MICROSOFT_LM) if config.enhanced_mask_decoder else ()


def _decode(ours, fields):
    width = fields["hidden_size"]
    check_only(fields, "pooler_hidden_size", width)
    check_only(fields, "embedding_size", width)
    check_only(fields, "attention_head_size", width // fields["num_attention_heads"])
    kinds = fields["pos_att_type"] or ()
    # Old files separate the kinds by "|".
    kinds = kinds.split("|") if isinstance(kinds, str) else kinds
    kinds = [kind.strip() for kind in kinds if kind]
    if kinds and not fields["relative_attention"]:
        # `transformers` would still scale by the number of kinds.
        raise InputError(
            f"relative_attention={fields['relative_attention']!r} with pos_att_type={kinds} is "
            "not supported; give pos_att_type=[] or relative_attention=true."
        )
    terms = tuple(t for t in ("c2c", "c2p", "p2c", "p2p") if t == "c2c" or t in kinds)
    ours = ours | {"terms": terms}
    if ours["max_distance"] < 1:
        ours["max_distance"] = ours.get("max_length", 512)
    if "num_buckets" in ours:
        buckets = ours["num_buckets"] if kinds else 0
        ours["num_buckets"] = buckets if buckets > 0 else None
        ours["normalize_positions"] = "layer_norm" in ours["normalize_positions"] and bool(kinds)
    if not kinds:
        ours.pop("share_att_key", None)
    # The head with Microsoft's names has no separate output table.
    return ours | ({} if fields["legacy"] else {"tie_embeddings": True})


def _encode(theirs, config):
    kinds = [term for term in config.terms if term != "c2c"]
    theirs = theirs | {"relative_attention": bool(kinds), "pos_att_type": kinds}
    if "norm_rel_ebd" in theirs:
        theirs["norm_rel_ebd"] = "layer_norm" if config.normalize_positions else "none"
        theirs["position_buckets"] = config.num_buckets or -1
    # `transformers` loads the head with Microsoft's names, but decodes without positions.
    return theirs | {"legacy": not config.enhanced_mask_decoder}


def _adapt(config, names):
    """Return the config with tied outputs and mask decoder as in Microsoft's files.

    Their files have absolute positions only for the mask decoder, and tied outputs.
    """
    has_head = any(name.startswith("lm_predictions.") for name in names)
    has_positions = any(name.endswith(POSITIONS) for name in names)
    if not has_head:
        return config
    decoder = has_positions and not config.absolute_positions
    decoder = decoder or config.enhanced_mask_decoder
    return dataclasses.replace(config, tie_embeddings=True, enhanced_mask_decoder=decoder)


DEBERTA = CheckpointMap(
    model_type="deberta",
    config=DebertaConfig,
    prefix="deberta.",
    fields=FIELDS,
    encoder=V1_ENCODER,
    heads=HEADS,
    architectures=architectures("Deberta", discriminator=DISCRIMINATOR),
    fixed=FIXED,
    defaults=DEFAULTS,
    decode=_decode,
    encode=_encode,
    adapt=_adapt,
    variant=_variant,
)
DEBERTA_V2 = dataclasses.replace(
    DEBERTA,
    model_type="deberta-v2",
    config=DebertaV2Config,
    fields=V2_FIELDS,
    encoder=V2_ENCODER,
    architectures=architectures("DebertaV2", discriminator=DISCRIMINATOR),
    defaults=V2_DEFAULTS,
)
