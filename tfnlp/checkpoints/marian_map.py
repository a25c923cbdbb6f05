"""Mapping of Marian and Pegasus (pre-norm) between tfnlp and Hugging Face."""

import dataclasses

from tfnlp.checkpoints.checkpoint_map import (
    COMMON_FIXED,
    COMMON_HARMLESS,
    CheckpointMap,
    Weight,
    dense,
    heads,
    kernel,
    norm,
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
HARMLESS = {
    *(COMMON_HARMLESS - FIELDS.keys()),
    # They are of BART's code, which old versions ran; no code of today's reads them.
    *("add_bias_logits", "add_final_layer_norm", "normalize_before", "normalize_embedding"),
    *("static_position_embeddings", "extra_pos_embeddings", "force_bos_token_to_be_generated"),
    *("classif_dropout", "classifier_dropout", "_num_labels"),
}
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


def _block(ours, theirs):
    return (
        *dense(f"{ours}/attention/query", f"{theirs}.self_attn.q_proj"),
        *dense(f"{ours}/attention/key", f"{theirs}.self_attn.k_proj"),
        *dense(f"{ours}/attention/value", f"{theirs}.self_attn.v_proj"),
        *dense(f"{ours}/attention/output", f"{theirs}.self_attn.out_proj"),
        *norm(f"{ours}/attention_norm", f"{theirs}.self_attn_layer_norm"),
        *dense(f"{ours}/feed_forward/intermediate", f"{theirs}.fc1"),
        *dense(f"{ours}/feed_forward/output", f"{theirs}.fc2"),
        *norm(f"{ours}/feed_forward_norm", f"{theirs}.final_layer_norm"),
    )


# Both families have the same names.
ENCODER = (
    # Old files hold the one table under all three names.
    Weight(
        "embeddings/token_table", "shared.weight", other_names=("decoder.embed_tokens.weight",)
    ),
    Weight("encoder_embeddings/token_table", "encoder.embed_tokens.weight"),
    *_block("encoder_{}", "encoder.layers.{}"),
    *_block("decoder_{}", "decoder.layers.{}"),
    *dense("decoder_{}/cross_attention/query", "decoder.layers.{}.encoder_attn.q_proj"),
    *dense("decoder_{}/cross_attention/key", "decoder.layers.{}.encoder_attn.k_proj"),
    *dense("decoder_{}/cross_attention/value", "decoder.layers.{}.encoder_attn.v_proj"),
    *dense("decoder_{}/cross_attention/output", "decoder.layers.{}.encoder_attn.out_proj"),
    *norm("decoder_{}/cross_attention_norm", "decoder.layers.{}.encoder_attn_layer_norm"),
    *norm("encoder_norm", "encoder.layer_norm"),
    *norm("decoder_norm", "decoder.layer_norm"),
)
HEADS = heads(
    sequence_to_sequence=(
        kernel("lm_output", "lm_head"),
        Weight("lm_bias/bias", "final_logits_bias", axes="1V"),
    )
)


def _separate_tables(config):
    """Return the decoder's table where the encoder has another one."""
    if config.share_embeddings:
        return ()
    return (Weight("embeddings/token_table", "decoder.embed_tokens.weight"),)


def _decode(ours, fields):
    if not isinstance(ours.get("end_token_id", 0), int):
        raise InputError(f"eos_token_id={fields['eos_token_id']!r} is not supported; only one is.")
    if not ours.get("tie_embeddings", True):  # then no tables are tied
        ours["share_embeddings"] = False
    if ours.get("target_vocabulary_size") == ours.get("vocabulary_size"):
        ours.pop("target_vocabulary_size", None)
    # A Pegasus is a Marian whose norms come first.
    ours["norm_first"] = fields.get("model_type") == "pegasus"
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


MARIAN = CheckpointMap(
    model_type="marian",
    config=TransformerConfig,
    prefix=PREFIX,
    fields=MARIAN_FIELDS,
    encoder=ENCODER,
    heads=HEADS,
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
    variant=_separate_tables,
    generation=_generation,
)
PEGASUS = dataclasses.replace(
    MARIAN,
    model_type="pegasus",
    fields=FIELDS,
    architectures={
        None: "PegasusModel",
        "sequence_to_sequence": "PegasusForConditionalGeneration",
    },
    defaults=DEFAULTS
    | {"vocab_size": 50265, "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1},
    constants=_sinusoids,
)
