"""Mapping of DeBERTa v1, v2 and v3 between tfnlp and Hugging Face."""

import dataclasses

from tfnlp.checkpoints.bert_map import bert_lm_head, layer_rest, lm_transform
from tfnlp.checkpoints.family import (
    COMMON_FIELDS,
    COMMON_FIXED,
    Family,
    Weight,
    architectures,
    check_only,
    dense,
    norm,
    token_heads,
)
from tfnlp.configs import DebertaConfig, DebertaV2Config
from tfnlp.functional.positions import check_distances
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


def weights(config, head):
    yield Weight("embeddings/token_table", "embeddings.word_embeddings.weight")
    if config.absolute_positions:
        yield Weight("embeddings/position_table", "embeddings.position_embeddings.weight")
    if config.num_segments:
        yield Weight("embeddings/segment_table", "embeddings.token_type_embeddings.weight")
    yield from norm("embeddings/norm", "embeddings.LayerNorm")
    v2 = isinstance(config, DebertaV2Config)
    attention = _v2_attention if v2 else _attention
    for i in range(config.num_layers):
        ours, theirs = f"encoder_{i}", f"encoder.layer.{i}"
        yield from attention(config, f"{ours}/attention", f"{theirs}.attention.self")
        yield from layer_rest(ours, theirs)
    if config.terms != ("c2c",):
        yield Weight("relative_positions/table", "encoder.rel_embeddings.weight")
    if v2 and config.normalize_positions:
        yield from norm("relative_positions/norm", "encoder.LayerNorm")
    if v2 and config.convolution_size:
        size, groups = config.convolution_size, config.convolution_groups
        shape = (config.hidden_dim, config.hidden_dim // groups, size)
        name = "encoder.conv.conv.weight"
        yield Weight("convolution/convolution/kernel", name, transpose=True, shape=shape)
        yield Weight("convolution/convolution/bias", "encoder.conv.conv.bias")
        yield from norm("convolution/norm", "encoder.conv.LayerNorm")
    if head in ("classifier", "chooser"):
        yield from dense("pooler", "pooler.dense", head=True)
        yield from dense("classifier", "classifier", head=True)
    yield from token_heads(head)
    if head == "masked_lm":
        yield from _lm_head(config)
    elif head == "discriminator":
        # Names of Microsoft's own files; `transformers` lacks this head.
        stem = "mask_predictions"
        yield from norm("discriminator_norm", f"{stem}.LayerNorm", head=True)
        yield from dense("discriminator_transform", f"{stem}.dense", head=True)
        yield from dense("discriminator", f"{stem}.classifier", head=True)


def _lm_head(config):
    # Names of Microsoft's own files.
    stem = "lm_predictions.lm_head"
    weights = [*lm_transform(stem), Weight("lm_bias/bias", f"{stem}.bias", head=True)]
    if config.enhanced_mask_decoder:
        yield Weight("decoder_positions/position_table", POSITIONS)
        yield from weights
        return
    names = {weight.path: weight.name for weight in weights if config.tie_embeddings}
    for weight in bert_lm_head(config):
        others = (names[weight.path],) if weight.path in names else ()
        yield dataclasses.replace(weight, other_names=others + weight.other_names)


def _attention(config, ours, theirs):
    yield Weight(f"{ours}/joint/kernel", f"{theirs}.in_proj.weight", transpose=True)
    yield Weight(f"{ours}/query_bias", f"{theirs}.q_bias")
    yield Weight(f"{ours}/value_bias", f"{theirs}.v_bias")
    if "c2p" in config.terms:
        name = f"{theirs}.pos_proj.weight"
        yield Weight(f"{ours}/position_key/kernel", name, transpose=True)
    if "p2c" in config.terms:
        yield from dense(f"{ours}/position_query", f"{theirs}.pos_q_proj")


def _v2_attention(config, ours, theirs):
    for part in ("query", "key", "value"):
        yield from dense(f"{ours}/{part}", f"{theirs}.{part}_proj")
    if not config.share_att_key:
        if "c2p" in config.terms:
            yield from dense(f"{ours}/position_key", f"{theirs}.pos_key_proj")
        if "p2c" in config.terms:
            yield from dense(f"{ours}/position_query", f"{theirs}.pos_query_proj")


def _unread(config):
    """Return the names of position tables and norms unused by attention without positions."""
    names = ("rel_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias")
    return [f"encoder.{name}" for name in names] if config.terms == ("c2c",) else []


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
    try:
        check_distances(ours["max_distance"], ours.get("num_buckets"))
    except ValueError as e:
        buckets = fields.get("position_buckets")
        raise InputError(f"position_buckets={buckets} is not supported: {e}") from None
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


DEBERTA = Family(
    model_type="deberta",
    config=DebertaConfig,
    prefix="deberta.",
    fields=FIELDS,
    weights=weights,
    architectures=architectures("Deberta", discriminator=DISCRIMINATOR),
    fixed=FIXED,
    defaults=DEFAULTS,
    decode=_decode,
    encode=_encode,
    adapt=_adapt,
    unread=_unread,
)
DEBERTA_V2 = Family(
    model_type="deberta-v2",
    config=DebertaV2Config,
    prefix="deberta.",
    fields=V2_FIELDS,
    weights=weights,
    architectures=architectures("DebertaV2", discriminator=DISCRIMINATOR),
    fixed=FIXED,
    defaults=V2_DEFAULTS,
    decode=_decode,
    encode=_encode,
    adapt=_adapt,
    unread=_unread,
)
