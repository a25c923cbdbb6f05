"""Mapping of ELECTRA between tfnlp and Hugging Face."""

from tfnlp.checkpoints.bert_map import EMBEDDINGS, FIELDS, FIXED, LAYERS
from tfnlp.checkpoints.checkpoint_map import CheckpointMap, architectures, dense, heads, masked_lm
from tfnlp.configs import ElectraConfig

ELECTRA = CheckpointMap(
    model_type="electra",
    config=ElectraConfig,
    prefix="electra.",
    fields=FIELDS | {"embedding_size": "embedding_dim", "summary_last_dropout": "chooser_dropout"},
    encoder=(*EMBEDDINGS, *dense("embeddings/projection", "embeddings_project"), *LAYERS),
    heads=heads(
        classifier=(
            *dense("pooler", "classifier.dense"),
            *dense("classifier", "classifier.out_proj"),
        ),
        chooser=(*dense("pooler", "sequence_summary.summary"), *dense("classifier", "classifier")),
        masked_lm=masked_lm(
            *("generator_predictions.dense", "generator_predictions.LayerNorm"),
            "generator_lm_head",
        ),
        discriminator=(
            *dense("discriminator_transform", "discriminator_predictions.dense"),
            *dense("discriminator", "discriminator_predictions.dense_prediction"),
        ),
    ),
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
