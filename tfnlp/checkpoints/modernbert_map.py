"""Mapping of ModernBERT between tfnlp and Hugging Face."""

import dataclasses

from tfnlp.checkpoints.checkpoint_map import (
    COMMON_FIELDS,
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
)
from tfnlp.configs import ModernBertConfig
from tfnlp.utils.errors import InputError

OTHER_NAMES = ("hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob")
FIELDS = {
    name: ours
    for name, ours in COMMON_FIELDS.items()
    if name not in (*OTHER_NAMES, "type_vocab_size", "layer_norm_eps")
} | {
    "hidden_activation": "activation",
    "mlp_dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "embedding_dropout": "embedding_dropout",
    "classifier_dropout": "classifier_dropout",
    "norm_eps": "layer_norm_epsilon",
    "local_attention": "local_attention",
    "classifier_pooling": "classifier_pooling",
}
# `transformers` 5 has the last three as the first two.
DEFAULTS = {
    "layer_types": None,
    "rope_parameters": None,
    "head_dim": None,
    "hidden_size": 768,
    "num_hidden_layers": 22,
    "num_attention_heads": 12,
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160_000.0,
    "local_rope_theta": 10_000.0,
}
KINDS = {"local": "sliding_attention", "global": "full_attention"}


def _scale(path, name):
    """Return the scale of a torch LayerNorm without a shift."""
    return Weight(f"{path}/gamma", f"{name}.weight")


ENCODER = (
    Weight("embeddings/token_table", "embeddings.tok_embeddings.weight"),
    _scale("embeddings/norm", "embeddings.norm"),
    *joint_kernels("encoder_{}/attention", "layers.{}.attn.Wqkv"),
    kernel("encoder_{}/attention/output", "layers.{}.attn.Wo"),
    _scale("encoder_{}/attention_norm", "layers.{}.attn_norm"),
    kernel("encoder_{}/feed_forward/intermediate", "layers.{}.mlp.Wi"),
    kernel("encoder_{}/feed_forward/output", "layers.{}.mlp.Wo"),
    _scale("encoder_{}/feed_forward_norm", "layers.{}.mlp_norm"),
    _scale("final_norm", "final_norm"),
)


def _prediction(dense_path, norm_path):
    """Return the dense layer and the norm that each head begins with."""
    rows = kernel(dense_path, "head.dense"), _scale(norm_path, "head.norm")
    return tuple(dataclasses.replace(row, of_any_head=True) for row in rows)


PREDICTION = _prediction("prediction", "prediction_norm")
CLASSES = (*PREDICTION, *dense("classifier", "classifier"))


def _decode(ours, fields):
    """Return our fields with thetas and the distance of global blocks."""
    check_only(fields, "head_dim", fields["hidden_size"] // fields["num_attention_heads"])
    every, types = fields["global_attn_every_n_layers"], fields["layer_types"]
    count = fields["num_hidden_layers"]
    if types not in (None, _layer_types(count, every)):
        seconds = [i for i, kind in enumerate(types) if kind == KINDS["global"] and i]
        every = min(seconds, default=max(len(types), 1))
        if types != _layer_types(count, every):
            raise InputError(
                f"layer_types={types} is not supported with num_hidden_layers={count}; only a "
                "full_attention in the first of equally many layers is."
            )
    ours = ours | {"global_every": every}
    for kind, name in KINDS.items():
        rope = (fields["rope_parameters"] or {}).get(name) or {}
        if rope.get("rope_type", "default") != "default":
            raise InputError(
                f"rope_parameters={fields['rope_parameters']} is not supported; only a rope_type "
                "of 'default' is."
            )
        ours[f"{kind}_theta"] = rope.get("rope_theta", fields[f"{kind}_rope_theta"])
    return ours


def _encode(theirs, config):
    thetas = {"local": config.local_theta, "global": config.global_theta}
    rope = {
        name: {"rope_type": "default", "rope_theta": thetas[kind]} for kind, name in KINDS.items()
    }
    return theirs | {
        "layer_types": _layer_types(config.num_layers, config.global_every),
        "rope_parameters": rope,
        "global_attn_every_n_layers": config.global_every,
        **{f"{kind}_rope_theta": theta for kind, theta in thetas.items()},
    }


def _layer_types(num_layers, every):
    return [KINDS["local" if i % every else "global"] for i in range(num_layers)]


MODERNBERT = CheckpointMap(
    model_type="modernbert",
    config=ModernBertConfig,
    prefix="model.",
    fields=FIELDS,
    encoder=ENCODER,
    heads=heads(
        classifier=CLASSES,
        chooser=CLASSES,
        tagger=CLASSES,
        answerer=(*PREDICTION, *dense("span", "classifier")),
        masked_lm=(
            *_prediction("lm_transform", "lm_norm"),
            kernel("lm_output", "decoder"),
            Weight("lm_bias/bias", "decoder.bias"),
        ),
    ),
    architectures=architectures("ModernBert"),
    fixed=COMMON_FIXED
    | dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"), False)
    | {"decoder_bias": True, "classifier_activation": "gelu"},
    harmless={
        *COMMON_HARMLESS,
        # Of fresh weights, of the loss alone, and the same result computed otherwise.
        *("initializer_cutoff_factor", "sparse_prediction", "sparse_pred_ignore_index"),
        *("deterministic_flash_attn", "reference_compile", "repad_logits_with_grad"),
        # In the released files; no code reads them.
        *("position_embedding_type", "layer_norm_eps"),
    },
    defaults=DEFAULTS,
    # Of other heads.
    unread=("head.", "decoder."),
    decode=_decode,
    encode=_encode,
)
