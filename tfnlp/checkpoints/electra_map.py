"""Mapping of ELECTRA between tfnlp and Hugging Face."""

from tfnlp.checkpoints.bert_map import FIXED, embeddings, layers
from tfnlp.checkpoints.family import (
    COMMON_FIELDS,
    HEAD_FIELDS,
    Family,
    Weight,
    architectures,
    dense,
    norm,
    output_table,
    token_heads,
)
from tfnlp.configs import ElectraConfig

FIELDS = (
    COMMON_FIELDS
    | HEAD_FIELDS
    | {
        "embedding_size": "embedding_dim",
        "classifier_dropout": "classifier_dropout",
        "summary_last_dropout": "chooser_dropout",
    }
)


def weights(config, head):
    yield from embeddings(config)
    if config.embedding_dim != config.hidden_dim:
        yield from dense("embeddings/projection", "embeddings_project")
    yield from layers(config)
    if head == "classifier":
        yield from dense("pooler", "classifier.dense", head=True)
        yield from dense("classifier", "classifier.out_proj", head=True)
    elif head == "chooser":
        yield from dense("pooler", "sequence_summary.summary", head=True)
        yield from dense("classifier", "classifier", head=True)
    yield from token_heads(head)
    if head == "masked_lm":
        yield from dense("lm_transform", "generator_predictions.dense", head=True)
        yield from norm("lm_norm", "generator_predictions.LayerNorm", head=True)
        yield from output_table(config, "generator_lm_head.weight")
        yield Weight("lm_bias/bias", "generator_lm_head.bias", head=True)
    elif head == "discriminator":
        stem = "discriminator_predictions"
        yield from dense("discriminator_transform", f"{stem}.dense", head=True)
        yield from dense("discriminator", f"{stem}.dense_prediction", head=True)


ELECTRA = Family(
    model_type="electra",
    config=ElectraConfig,
    prefix="electra.",
    fields=FIELDS,
    weights=weights,
    architectures=architectures("Electra", discriminator="ElectraForPreTraining"),
    # The summary is the chooser's.
    fixed=FIXED
    | {
        "summary_type": "first",
        "summary_use_proj": True,
        "summary_activation": "gelu",
        "summary_first_dropout": 0,
        "summary_proj_to_labels": False,
    },
)
