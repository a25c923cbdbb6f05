"""Mapping of ALBERT between tfnlp and Hugging Face."""

from tfnlp.checkpoints.bert_map import FIXED, embeddings
from tfnlp.checkpoints.family import (
    COMMON_FIELDS,
    COMMON_HARMLESS,
    HEAD_FIELDS,
    Family,
    architectures,
    because,
    dense,
    norm,
    output_bias,
    output_table,
    token_heads,
)
from tfnlp.configs import MASKED_LMS, AlbertConfig

FIELDS = (
    COMMON_FIELDS
    | HEAD_FIELDS
    | {
        "embedding_size": "embedding_dim",
        "num_hidden_groups": "num_groups",
        "classifier_dropout_prob": "classifier_dropout",
    }
)


def weights(config, head):
    yield from embeddings(config)
    yield from dense("embeddings/projection", "encoder.embedding_hidden_mapping_in")
    for i in range(config.num_groups):
        ours = f"encoder/block_{i}"
        theirs = f"encoder.albert_layer_groups.{i}.albert_layers.0"
        for part in ("query", "key", "value"):
            yield from dense(f"{ours}/attention/{part}", f"{theirs}.attention.{part}")
        yield from dense(f"{ours}/attention/output", f"{theirs}.attention.dense")
        yield from norm(f"{ours}/attention_norm", f"{theirs}.attention.LayerNorm")
        yield from dense(f"{ours}/feed_forward/intermediate", f"{theirs}.ffn")
        yield from dense(f"{ours}/feed_forward/output", f"{theirs}.ffn_output")
        yield from norm(f"{ours}/feed_forward_norm", f"{theirs}.full_layer_layer_norm")
    if head in (None, "classifier", "chooser", "pretraining"):
        yield from dense("pooler", "pooler")
    if head in ("classifier", "chooser"):
        yield from dense("classifier", "classifier", head=True)
    yield from token_heads(head)
    if head in MASKED_LMS:
        yield from dense("lm_transform", "predictions.dense", head=True)
        yield from norm("lm_norm", "predictions.LayerNorm", head=True)
        yield from output_table(config, "predictions.decoder.weight")
        yield from output_bias(config, "predictions.bias", "predictions.decoder.bias")
    if head == "pretraining":
        yield from dense("pair_classifier", "sop_classifier.classifier", head=True)


ALBERT = Family(
    model_type="albert",
    config=AlbertConfig,
    prefix="albert.",
    fields=FIELDS,
    weights=weights,
    architectures=architectures("Albert", pretraining="AlbertForPreTraining"),
    fixed=FIXED | {"inner_group_num": 1},
    harmless=COMMON_HARMLESS
    | because(
        "in Google's files; no code reads it",
        *("down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"),
        "layers_to_keep",
    ),
    defaults={
        "hidden_size": 4096,
        "num_attention_heads": 64,
        "intermediate_size": 16384,
        "hidden_act": "gelu_new",
    },
    # keras-hub does not read a config.json without it.
    encode=lambda theirs, _: theirs | {"inner_group_num": 1},
)
