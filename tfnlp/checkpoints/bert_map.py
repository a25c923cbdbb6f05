"""Mapping of BERT, RoBERTa and XLM-RoBERTa between tfnlp and Hugging Face."""

import dataclasses

from tfnlp.checkpoints.checkpoint_map import (
    COMMON_FIELDS,
    COMMON_FIXED,
    COMMON_HARMLESS,
    HEAD_FIELDS,
    CheckpointMap,
    Weight,
    architectures,
    dense,
    heads,
    masked_lm,
    norm,
)
from tfnlp.configs import BertConfig, RobertaConfig, XlmRobertaConfig

FIELDS = COMMON_FIELDS | HEAD_FIELDS | {"classifier_dropout": "classifier_dropout"}
FIXED = COMMON_FIXED | {"position_embedding_type": "absolute"}
EMBEDDINGS = (
    Weight("embeddings/token_table", "embeddings.word_embeddings.weight"),
    Weight("embeddings/position_table", "embeddings.position_embeddings.weight"),
    Weight("embeddings/segment_table", "embeddings.token_type_embeddings.weight"),
    *norm("embeddings/norm", "embeddings.LayerNorm"),
)
AFTER_ATTENTION = (
    *dense("encoder_{}/attention/output", "encoder.layer.{}.attention.output.dense"),
    *norm("encoder_{}/attention_norm", "encoder.layer.{}.attention.output.LayerNorm"),
    *dense("encoder_{}/feed_forward/intermediate", "encoder.layer.{}.intermediate.dense"),
    *dense("encoder_{}/feed_forward/output", "encoder.layer.{}.output.dense"),
    *norm("encoder_{}/feed_forward_norm", "encoder.layer.{}.output.LayerNorm"),
)
LAYERS = (
    *dense("encoder_{}/attention/query", "encoder.layer.{}.attention.self.query"),
    *dense("encoder_{}/attention/key", "encoder.layer.{}.attention.self.key"),
    *dense("encoder_{}/attention/value", "encoder.layer.{}.attention.self.value"),
    *AFTER_ATTENTION,
)
BERT_LM = masked_lm(
    *("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
    *("cls.predictions.decoder", "cls.predictions.bias"),
)


def _count_positions(ours, fields):
    """Return our fields with `max_length` less the rows before the first position."""
    offset = ours.get("pad_token_id", 1) + 1
    return ours | {"max_length": ours["max_length"] - offset}


def _count_rows(theirs, config):
    return theirs | {"max_position_embeddings": config.max_length + config.pad_token_id + 1}


BERT = CheckpointMap(
    model_type="bert",
    config=BertConfig,
    prefix="bert.",
    fields=FIELDS,
    encoder=(*EMBEDDINGS, *LAYERS, *dense("pooler", "pooler.dense")),
    heads=heads(
        classifier=dense("classifier", "classifier"),
        chooser=dense("classifier", "classifier"),
        masked_lm=BERT_LM,
        pretraining=(*BERT_LM, *dense("pair_classifier", "cls.seq_relationship")),
    ),
    architectures=architectures("Bert", pretraining="BertForPreTraining"),
    fixed=FIXED,
    harmless={
        *COMMON_HARMLESS,
        # In Google's multilingual files; no code reads them.
        *("directionality", "pooler_fc_size", "pooler_num_attention_heads"),
        *("pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"),
    },
)
ROBERTA = CheckpointMap(
    model_type="roberta",
    config=RobertaConfig,
    prefix="roberta.",
    fields=FIELDS,
    encoder=(*EMBEDDINGS, *LAYERS, *dense("pooler", "pooler.dense")),
    heads=heads(
        classifier=(
            *dense("pooler", "classifier.dense"),
            *dense("classifier", "classifier.out_proj"),
        ),
        chooser=dense("classifier", "classifier"),
        masked_lm=masked_lm(
            "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"
        ),
    ),
    architectures=architectures("Roberta"),
    fixed=FIXED,
    defaults={"layer_norm_eps": 1e-12, "type_vocab_size": 2, "max_position_embeddings": 512},
    decode=_count_positions,
    encode=_count_rows,
)
# `transformers` has RoBERTa's names in classes of its own.
XLM_ROBERTA = dataclasses.replace(
    ROBERTA,
    model_type="xlm-roberta",
    config=XlmRobertaConfig,
    architectures=architectures("XLMRoberta"),
    defaults=ROBERTA.defaults | {"vocab_size": 30522},
)
