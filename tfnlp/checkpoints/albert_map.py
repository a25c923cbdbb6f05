"""Mapping of ALBERT between tfnlp and Hugging Face."""

from tfnlp.checkpoints.bert_map import EMBEDDINGS, FIXED
from tfnlp.checkpoints.checkpoint_map import (
    COMMON_FIELDS,
    COMMON_HARMLESS,
    HEAD_FIELDS,
    CheckpointMap,
    architectures,
    dense,
    heads,
    masked_lm,
    norm,
)
from tfnlp.configs import AlbertConfig

# A group of layers.
GROUP = "encoder.albert_layer_groups.{}.albert_layers.0"
LM = masked_lm(
    *("predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias")
)

ALBERT = CheckpointMap(
    model_type="albert",
    config=AlbertConfig,
    prefix="albert.",
    fields=COMMON_FIELDS
    | HEAD_FIELDS
    | {
        "embedding_size": "embedding_dim",
        "num_hidden_groups": "num_groups",
        "classifier_dropout_prob": "classifier_dropout",
    },
    encoder=(
        *EMBEDDINGS,
        *dense("embeddings/projection", "encoder.embedding_hidden_mapping_in"),
        *dense("encoder/block_{}/attention/query", f"{GROUP}.attention.query"),
        *dense("encoder/block_{}/attention/key", f"{GROUP}.attention.key"),
        *dense("encoder/block_{}/attention/value", f"{GROUP}.attention.value"),
        *dense("encoder/block_{}/attention/output", f"{GROUP}.attention.dense"),
        *norm("encoder/block_{}/attention_norm", f"{GROUP}.attention.LayerNorm"),
        *dense("encoder/block_{}/feed_forward/intermediate", f"{GROUP}.ffn"),
        *dense("encoder/block_{}/feed_forward/output", f"{GROUP}.ffn_output"),
        *norm("encoder/block_{}/feed_forward_norm", f"{GROUP}.full_layer_layer_norm"),
        *dense("pooler", "pooler"),
    ),
    heads=heads(
        classifier=dense("classifier", "classifier"),
        chooser=dense("classifier", "classifier"),
        masked_lm=LM,
        pretraining=(*LM, *dense("pair_classifier", "sop_classifier.classifier")),
    ),
    architectures=architectures("Albert", pretraining="AlbertForPreTraining"),
    fixed=FIXED | {"inner_group_num": 1},
    harmless={
        *COMMON_HARMLESS,
        # In Google's files; no code reads them.
        *("down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"),
        "layers_to_keep",
    },
    defaults={
        "hidden_size": 4096,
        "num_attention_heads": 64,
        "intermediate_size": 16384,
        "hidden_act": "gelu_new",
    },
    # keras-hub does not read a config.json without it.
    encode=lambda theirs, _: theirs | {"inner_group_num": 1},
)
