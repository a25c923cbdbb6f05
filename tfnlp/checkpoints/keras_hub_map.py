"""Mapping of keras-hub's models, each as the family of `transformers` that has it.

A tensor's name is the path of its variable in keras-hub's model: ours, with other parts.
"""

import dataclasses
import re

import numpy as np

from tfnlp.checkpoints.checkpoint_map import MAPS, Weight, of_head, read_fields
from tfnlp.text.tokenizers.keras_hub_tokenizer import read_pad_token_id
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json

# Their fields: ours; a family has some of them.
FIELDS = {
    **{name: name for name in ("vocabulary_size", "num_layers", "num_heads", "hidden_dim")},
    **{name: name for name in ("intermediate_dim", "embedding_dim", "num_groups", "dropout")},
    **{name: name for name in ("num_segments", "activation")},
    "vocab_size": "vocabulary_size",
    "max_sequence_length": "max_length",
    "bucket_size": "num_buckets",
}
# Keras writes the first three for any model; the others say how fresh weights are drawn.
HARMLESS = {"name", "trainable", "dtype", "kernel_initializer_range", "bias_initializer"}
# Parts of our paths: theirs, replaced in this order.
PARTS = {
    "encoder_{}/": "transformer_layer_{}/",
    "/attention/output/": "/self_attention_layer/attention_output/",
    "/attention/": "/self_attention_layer/",
    "/attention_norm/": "/self_attention_layer_norm/",
    "/feed_forward/intermediate/": "/feedforward_intermediate_dense/",
    "/feed_forward/output/": "/feedforward_output_dense/",
    "/feed_forward_norm/": "/feedforward_layer_norm/",
    "embeddings/token_table": "token_embedding/embeddings",
    "embeddings/position_table": "position_embedding/embeddings",
    "embeddings/segment_table": "segment_embedding/embeddings",
    "embeddings/norm/": "embeddings_layer_norm/",
    "embeddings/projection/": "embeddings_projection/",
    "pooler/": "pooled_dense/",
    "classifier/": "logits/",
}
ALBERT = {
    "embeddings/projection/": "embedding_projection/",
    "encoder/block_{}/": "group_{}_inner_layer_0/",
}
DISTILBERT = {
    f"embeddings/{name}_table": f"token_and_position_embedding/{name}_embedding/embeddings"
    for name in ("token", "position")
}
ROBERTA_POSITIONS = "embeddings/position_embedding/embeddings"
ROBERTA = {
    "embeddings/token_table": "embeddings/token_embedding/embeddings",
    "embeddings/position_table": ROBERTA_POSITIONS,
    "embeddings/segment_table": "segments",
}
DEBERTA = {
    "encoder_{}/": "disentangled_attention_encoder_layer_{}/",
    "relative_positions/table": "rel_embedding/rel_embedding",
    "relative_positions/norm/": "rel_embedding/rel_embeddings_layer_norm/",
}
XLNET = {
    "encoder_{}/": "xlnet_encoder_{}/",
    "embeddings/token_table": "content_query_embedding/word_embedding/embeddings",
    "embeddings/query_vector": "encoder_block_attn_mask_layer/mask_emb",
    "/attention/content_bias": "/content_attention_bias",
    "/attention/position_bias": "/positional_attention_bias",
    "/attention/segment_bias": "/segment_attention_bias",
    "/attention/segment_table": "/segment_encoding",
    "/attention/position/": "/rel_attn/encoding/",
    "/attention/output/": "/rel_attn/attention_output/",
    "/attention/": "/rel_attn/",
    "/attention_norm/": "/layer_norm_rel_attn/",
    "/feed_forward_norm/": "/layer_norm_ff/",
}
GPT2 = {
    "/attention/output/": "/self_attention/attention_output/",
    "/attention/": "/self_attention/",
    "final_norm/": "layer_norm/",
}


def _weight(path, parts, output):
    """Return the `Weight` of a path; `output` has the axes of the kernel after the heads."""
    axes, is_output = "", path.endswith("/attention/output/kernel")
    if is_output:
        axes = output
    elif re.search("/attention/(query|key|value|position)/", path):
        axes = "NH" if path.endswith("/bias") else "DNH"
    name = path
    for ours, theirs in parts.items():
        name = name.replace(ours, theirs)
    return Weight(path, name, is_output and output == "DNH", axes)


def _roberta_tables(config, read_tensor):
    """Return the tables with the rows before the first position, and a segment: zeros."""
    before = np.zeros((config.pad_token_id + 1, config.hidden_dim), "float32")
    positions = np.r_[before, read_tensor(ROBERTA_POSITIONS)]
    return {ROBERTA_POSITIONS: positions, "segments": before[:1]}


def without_segments(config, tensors):
    """Return tensors by name with RoBERTa's only segment in its table of positions, as there."""
    if "segments" not in tensors:
        return tensors
    positions = tensors[ROBERTA_POSITIONS][config.pad_token_id + 1 :] + tensors["segments"][0]
    return tensors | {ROBERTA_POSITIONS: positions}


def _family(stem, model_type, parts=None, *, tasks=None, activation="gelu", output="NHD"):
    """Return the `CheckpointMap` of keras-hub's classes.

    Args:
        stem: prefix of their names.
        model_type: the family of `transformers`.
        parts: parts of our paths: theirs, replaced before `PARTS`.
        tasks: {our head: keras-hub's class}; a text classifier if None.
        activation: that of a class without such a field.
        output: as in `_weight`.
    """
    family, parts = MAPS[model_type], parts or {}
    parts = parts | {ours: PARTS[ours] for ours in PARTS if ours not in parts}
    tasks = {"classifier": f"{stem}TextClassifier"} if tasks is None else tasks

    def decode(ours, _):
        rate = ours.get("dropout", 0.1)
        others = {"attention_dropout": rate, "embedding_dropout": rate, "activation": activation}
        others |= {"max_distance": ours.get("max_length")}
        names = {field.name for field in dataclasses.fields(family.config)}
        return {name: x for name, x in others.items() if name in names} | ours

    classifier_paths = {row.path for row in family.heads["classifier"]}

    def weights(rows):
        return tuple(_weight(row.path, parts, output) for row in rows)

    return dataclasses.replace(
        family,
        prefix="",
        fields=FIELDS,
        # RoBERTa's pooler is its classifier's there.
        encoder=weights(row for row in family.encoder if row.path not in classifier_paths),
        # Others start from fresh weights, and a causal LM has none of its own.
        heads={head: of_head(weights(family.heads.get(head, ()))) for head in tasks},
        architectures={None: f"{stem}Backbone"} | tasks,
        fixed={"num_inner_repetitions": 1},
        harmless=HARMLESS,
        aliases={},
        defaults={},
        decode=decode,
        adapt=lambda config, names: config,
        variant=lambda config: (),
        computed=_roberta_tables if model_type == "roberta" else family.computed,
        unread=("pooled_dense/", "logits/", "mlm_head/"),
    )


# By the model type of our config. Of BERT's kind, `transformers` has most with the exact GELU.
PRESETS = {
    "bert": _family("Bert", "bert", activation="gelu_new"),
    "roberta": _family("Roberta", "roberta", ROBERTA),
    "distilbert": _family("DistilBert", "distilbert", DISTILBERT),
    "albert": _family("Albert", "albert", ALBERT, activation="gelu_new"),
    # Its pooler, which the paper's and `transformers`' models lack, is not read.
    "electra": _family("Electra", "electra", tasks={}, activation="gelu_new"),
    # Its attention joins its heads before the output.
    "deberta-v2": _family("DebertaV3", "deberta-v2", DEBERTA, output=""),
    "xlnet": _family("XLNet", "xlnet", XLNET, tasks={}, output="DNH"),
    "gpt2": _family(
        "GPT2", "gpt2", GPT2, tasks={"causal_lm": "GPT2CausalLM"}, activation="gelu_new"
    ),
}
# The same by the names of keras-hub's backbones.
BACKBONES = {family.architectures[None]: family for family in PRESETS.values()}


def read_preset(folder):
    """Return a preset folder's `CheckpointMap`, its config, and the names of unknown fields.

    Raises:
        InputError: if config.json has a class or a type of weights that tfnlp lacks.
    """
    path = folder / "config.json"
    fields = read_json(path)
    registered = fields.get("registered_name") or fields["class_name"]
    return read_backbone(registered, fields.get("config") or {}, path, read_pad_token_id(folder))


def read_backbone(registered, fields, place, pad_token_id=None):
    """Return what `read_preset` does, of a class as Keras registers it and of its config.

    Errors name `place`. A backbone lacks `pad_token_id`, which its tokenizer has; None for ours.
    """
    package, _, name = registered.rpartition(">")
    if package not in ("keras_hub", "keras_nlp") or name not in BACKBONES:
        raise InputError(
            f"{place}: the class {registered} is none that tfnlp reads of keras-hub; "
            f"those are {', '.join(BACKBONES)}."
        )
    policy = fields.get("dtype")
    if isinstance(policy, dict) and policy.get("class_name") != "DTypePolicy":
        raise InputError(
            f"{place}: the weights are quantized ({policy.get('class_name')}); save the preset "
            "as it was before `quantize`."
        )
    config, unknown = read_fields(BACKBONES[name], fields, place)
    if pad_token_id is not None:
        config = dataclasses.replace(config, pad_token_id=pad_token_id)
    return BACKBONES[name], config, unknown


def read_task(folder):
    """Return the class in a preset's task.json, else that of its backbone."""
    path = folder / "task.json"
    return read_json(path if path.exists() else folder / "config.json").get("class_name")
