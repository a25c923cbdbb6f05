"""Mapping of Marian and Pegasus (pre-norm) between tfnlp and Hugging Face."""

import dataclasses

from tfnlp.checkpoints.family import (
    COMMON_FIXED,
    COMMON_HARMLESS,
    Family,
    Weight,
    because,
    dense,
    norm,
    output_table,
)
from tfnlp.configs import TransformerConfig
from tfnlp.functional.positions import sinusoid_table
from tfnlp.utils.errors import InputError

# Of the names of the states' weights, where there are logits.
PREFIX = "model."
FIELDS = {
    "vocab_size": "vocabulary_size",
    "d_model": "hidden_dim",
    "encoder_layers": "num_layers",
    "encoder_attention_heads": "num_heads",
    "encoder_ffn_dim": "intermediate_dim",
    "decoder_layers": "num_decoder_layers",
    "decoder_attention_heads": "num_decoder_heads",
    "decoder_ffn_dim": "decoder_intermediate_dim",
    "activation_function": "activation",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "activation_dropout": "activation_dropout",
    "max_position_embeddings": "max_length",
    "init_std": "initializer_range",
    "scale_embedding": "scale_embeddings",
    "pad_token_id": "pad_token_id",
    "decoder_start_token_id": "start_token_id",
    "eos_token_id": "end_token_id",
    "tie_word_embeddings": "tie_embeddings",
    # A field of ours, for files without logits.
    "output_bias": "output_bias",
}
# Fields that a Pegasus lacks, since its two tables are always one.
MARIAN_FIELDS = FIELDS | {
    "share_encoder_decoder_embeddings": "share_embeddings",
    "decoder_vocab_size": "target_vocabulary_size",
}
ALIASES = {
    "num_attention_heads": "encoder_attention_heads",
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
}
FIXED = COMMON_FIXED | {
    "is_encoder_decoder": True,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}
HARMLESS = {name: why for name, why in COMMON_HARMLESS.items() if name not in FIELDS} | because(
    "of BART's code, which old versions ran; no code of today's reads it",
    *("add_bias_logits", "add_final_layer_norm", "normalize_before", "normalize_embedding"),
    *("static_position_embeddings", "extra_pos_embeddings", "force_bos_token_to_be_generated"),
    *("classif_dropout", "classifier_dropout", "_num_labels"),
)
# Defaults of fields that both lack in config.json.
DEFAULTS = {
    "d_model": 1024,
    "encoder_layers": 12,
    "encoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_layers": 12,
    "decoder_attention_heads": 16,
    "decoder_ffn_dim": 4096,
    "activation_function": "gelu",
    "max_position_embeddings": 1024,
    "init_std": 0.02,
    "scale_embedding": False,
}


def transformer_weights(config, head):
    """Yield the `Weight`s of both families, which have the same names."""
    if config.share_embeddings:
        # Old files hold the one table under all three names.
        copies = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
        yield Weight("embeddings/token_table", "shared.weight", other_names=copies)
    else:
        yield Weight("embeddings/token_table", "decoder.embed_tokens.weight")
        yield Weight("encoder_embeddings/token_table", "encoder.embed_tokens.weight")
    for side, count in (("encoder", config.num_layers), ("decoder", config.decoder.num_layers)):
        for i in range(count):
            yield from _block(f"{side}_{i}", f"{side}.layers.{i}", crosses=side == "decoder")
        if config.norm_first:
            yield from norm(f"{side}_norm", f"{side}.layer_norm")
    if head == "sequence_to_sequence":
        yield from output_table(config, "lm_head.weight")
        if config.output_bias:
            size = config.decoder.vocabulary_size
            yield Weight("lm_bias/bias", "final_logits_bias", shape=(1, size), head=True)


def _block(ours, theirs, crosses):
    yield from _attention(f"{ours}/attention", f"{theirs}.self_attn")
    yield from norm(f"{ours}/attention_norm", f"{theirs}.self_attn_layer_norm")
    if crosses:
        yield from _attention(f"{ours}/cross_attention", f"{theirs}.encoder_attn")
        yield from norm(f"{ours}/cross_attention_norm", f"{theirs}.encoder_attn_layer_norm")
    yield from dense(f"{ours}/feed_forward/intermediate", f"{theirs}.fc1")
    yield from dense(f"{ours}/feed_forward/output", f"{theirs}.fc2")
    yield from norm(f"{ours}/feed_forward_norm", f"{theirs}.final_layer_norm")


def _attention(ours, theirs):
    for part, name in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "out")):
        yield from dense(f"{ours}/{part}", f"{theirs}.{name}_proj")


def _decode(ours, fields):
    if not isinstance(ours.get("end_token_id", 0), int):
        raise InputError(f"eos_token_id={fields['eos_token_id']!r} is not supported; only one is.")
    if not ours.get("tie_embeddings", True):  # then no tables are tied
        ours["share_embeddings"] = False
    if ours.get("share_embeddings", True):
        size = ours.get("vocabulary_size")
        target_size = ours.pop("target_vocabulary_size", size)
        if target_size != size:
            raise InputError(
                f"decoder_vocab_size={target_size} differs from vocab_size={size}, but encoder "
                "and decoder share their table; set share_encoder_decoder_embeddings to false."
            )
    return ours


def _encode(theirs, config):
    if config.max_length is None:
        raise InputError(
            "`transformers` keeps a row for each position, so max_length=None cannot be saved; "
            "build the model with the longest text's length."
        )
    sizes = config.decoder
    theirs |= {
        "decoder_layers": sizes.num_layers,
        "decoder_attention_heads": sizes.num_heads,
        "decoder_ffn_dim": sizes.intermediate_dim,
        "init_std": DEFAULTS["init_std"] if theirs["init_std"] is None else theirs["init_std"],
        "is_encoder_decoder": True,
    }
    if "decoder_vocab_size" in theirs:
        theirs["decoder_vocab_size"] = sizes.vocabulary_size
    return theirs


def _sinusoids(config, head):
    """Return the sinusoidal positions, which files hold though they are computed."""
    table = sinusoid_table(config.max_length, config.hidden_dim, interleaved=False)
    prefix = PREFIX if head else ""
    return {f"{prefix}{side}.embed_positions.weight": table for side in ("encoder", "decoder")}


def _generation(config):
    """Return the fields of generation_config.json, as in the folders of released models."""
    return {
        "decoder_start_token_id": config.start_token_id,
        "pad_token_id": config.pad_token_id,
        "eos_token_id": config.end_token_id,
        "forced_eos_token_id": config.end_token_id,
        "bad_words_ids": [[config.pad_token_id]],
        "renormalize_logits": True,
        "num_beams": 4,
        "max_length": config.max_length,
    }


def _with_stored_bias(config, names):
    """Return the config with an output bias if the file or our config has one."""
    stored = config.output_bias or "final_logits_bias" in names
    return dataclasses.replace(config, output_bias=stored)


MARIAN = Family(
    model_type="marian",
    config=TransformerConfig,
    only={"norm_first": False},
    prefix=PREFIX,
    fields=MARIAN_FIELDS,
    weights=transformer_weights,
    architectures={None: "MarianModel", "sequence_to_sequence": "MarianMTModel"},
    fixed=FIXED,
    harmless=HARMLESS,
    aliases=ALIASES,
    defaults=DEFAULTS
    | {"vocab_size": 58101, "pad_token_id": 58100, "decoder_start_token_id": 58100}
    | {"eos_token_id": 0},
    decode=_decode,
    encode=_encode,
    adapt=_with_stored_bias,
    generation=_generation,
)
PEGASUS = Family(
    model_type="pegasus",
    config=TransformerConfig,
    only={"norm_first": True},
    prefix=PREFIX,
    fields=FIELDS,
    weights=transformer_weights,
    architectures={
        None: "PegasusModel",
        "sequence_to_sequence": "PegasusForConditionalGeneration",
    },
    fixed=FIXED,
    harmless=HARMLESS,
    aliases=ALIASES,
    defaults=DEFAULTS
    | {"vocab_size": 50265, "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1},
    decode=_decode,
    encode=_encode,
    adapt=_with_stored_bias,
    constants=_sinusoids,
    generation=_generation,
)
