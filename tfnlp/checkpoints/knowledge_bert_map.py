"""Folder format of ERNIE with tfnlp's names beside BERT's; `transformers` lacks it."""

import dataclasses

from tfnlp.checkpoints.bert_map import BERT
from tfnlp.checkpoints.checkpoint_map import Weight, architectures, dense, kernel, norm
from tfnlp.configs import KnowledgeBertConfig

ENTITY_FIELDS = ("num_entities", "entity_dim", "num_entity_heads", "num_knowledge_layers")
ENTITIES = (
    Weight("entity_embeddings/embeddings", "entity_embeddings.weight"),
    *(
        weight
        for name in ("query", "key", "value", "output")
        for weight in dense(
            f"encoder_{{}}/entity_attention/{name}", f"encoder.layer.{{}}.entity_attention.{name}"
        )
    ),
    *norm("encoder_{}/entity_attention_norm", "encoder.layer.{}.entity_attention.LayerNorm"),
    kernel(
        "encoder_{}/feed_forward/entity_intermediate", "encoder.layer.{}.intermediate.dense_ent"
    ),
    *dense("encoder_{}/feed_forward/entity_output", "encoder.layer.{}.output.dense_ent"),
    *norm("encoder_{}/entity_feed_forward_norm", "encoder.layer.{}.output.LayerNorm_ent"),
)
KNOWLEDGE_BERT = dataclasses.replace(
    BERT,
    model_type="knowledge_bert",
    config=KnowledgeBertConfig,
    fields=BERT.fields | {name: name for name in ENTITY_FIELDS},
    encoder=(*BERT.encoder, *ENTITIES),
    architectures=architectures("KnowledgeBert", pretraining="KnowledgeBertForPreTraining"),
)
