"""Mapping of DistilBERT between tfnlp and Hugging Face."""

from tfnlp.checkpoints.bert_map import EMBEDDINGS
from tfnlp.checkpoints.checkpoint_map import (
    COMMON_FIXED,
    COMMON_HARMLESS,
    HEAD_FIELDS,
    CheckpointMap,
    architectures,
    dense,
    heads,
    masked_lm,
    norm,
)
from tfnlp.configs import DistilBertConfig

POOLED = (*dense("pooler", "pre_classifier"), *dense("classifier", "classifier"))

DISTILBERT = CheckpointMap(
    model_type="distilbert",
    config=DistilBertConfig,
    prefix="distilbert.",
    fields=HEAD_FIELDS
    | {
        "vocab_size": "vocabulary_size",
        "n_layers": "num_layers",
        "n_heads": "num_heads",
        "dim": "hidden_dim",
        "hidden_dim": "intermediate_dim",
        "activation": "activation",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "seq_classif_dropout": "classifier_dropout",
        "qa_dropout": "answerer_dropout",
        "max_position_embeddings": "max_length",
        "initializer_range": "initializer_range",
        "pad_token_id": "pad_token_id",
        "tie_word_embeddings": "tie_embeddings",
    },
    encoder=(
        *EMBEDDINGS,
        *dense("encoder_{}/attention/query", "transformer.layer.{}.attention.q_lin"),
        *dense("encoder_{}/attention/key", "transformer.layer.{}.attention.k_lin"),
        *dense("encoder_{}/attention/value", "transformer.layer.{}.attention.v_lin"),
        *dense("encoder_{}/attention/output", "transformer.layer.{}.attention.out_lin"),
        *norm("encoder_{}/attention_norm", "transformer.layer.{}.sa_layer_norm"),
        *dense("encoder_{}/feed_forward/intermediate", "transformer.layer.{}.ffn.lin1"),
        *dense("encoder_{}/feed_forward/output", "transformer.layer.{}.ffn.lin2"),
        *norm("encoder_{}/feed_forward_norm", "transformer.layer.{}.output_layer_norm"),
    ),
    heads=heads(
        classifier=POOLED,
        chooser=POOLED,
        masked_lm=masked_lm("vocab_transform", "vocab_layer_norm", "vocab_projector"),
    ),
    architectures=architectures("DistilBert"),
    fixed=COMMON_FIXED | {"tie_weights_": True},
    # The position table is stored, however it was started.
    harmless={*COMMON_HARMLESS, "sinusoidal_pos_embds"},
    aliases={
        "hidden_size": "dim",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
    },
)
