"""Folder format of ELMo with tfnlp's names; `transformers` lacks it."""

import dataclasses

from tfnlp.checkpoints.family import Family, of_head
from tfnlp.checkpoints.recurrent_map import cell_weights, same
from tfnlp.configs import ElmoConfig

ENCODER = (
    *same("word_vectors/character_table"),
    *(
        weight
        for part in ("convolution_{}", "gate_{}", "transform_{}", "projection")
        for weight in same(f"word_vectors/{part}/kernel", f"word_vectors/{part}/bias")
    ),
    *(
        weight
        for direction in ("forward", "backward")
        for weight in (
            *cell_weights(f"{direction}_{{}}"),
            *same(f"{direction}_{{}}/projection_kernel"),
        )
    ),
)
TASK = of_head(
    (
        *same("word_embeddings/token_table", "mix/mix_weights", "mix/gamma"),
        *cell_weights("task_forward_{}/lstm_cell"),
        *cell_weights("task_backward_{}/lstm_cell"),
        *same("classifier/kernel", "classifier/bias"),
    )
)


def _fields():
    """Return {their field: ours}: equal names, except for `vocab_size`."""
    names = {field.name: field.name for field in dataclasses.fields(ElmoConfig)}
    names["vocab_size"] = names.pop("vocabulary_size")
    return names


def _decode(ours, fields):
    return ours | {"filters": tuple(ours["filters"])} if "filters" in ours else ours


ELMO = Family(
    model_type="elmo",
    config=ElmoConfig,
    prefix="elmo.",
    fields=_fields(),
    encoder=ENCODER,
    heads={
        "classifier": TASK,
        "tagger": TASK,
        "bidirectional_lm": of_head(same("lm_output/kernel", "lm_output/bias")),
    },
    architectures={
        None: "ElmoModel",
        "classifier": "ElmoForSequenceClassification",
        "tagger": "ElmoForTokenClassification",
        "bidirectional_lm": "ElmoForLM",
    },
    decode=_decode,
    # Tensors of the other heads.
    unread=("lm_output.", "word_embeddings.", "mix.", "task_", "classifier."),
)
