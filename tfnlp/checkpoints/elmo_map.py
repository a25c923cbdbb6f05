"""Folder format of ELMo with tfnlp's names; `transformers` lacks it."""

from tfnlp.checkpoints.checkpoint_map import CheckpointMap, architectures, of_head
from tfnlp.checkpoints.recurrent_map import cell_weights, own_fields, same, with_tuples
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
ELMO = CheckpointMap(
    model_type="elmo",
    config=ElmoConfig,
    prefix="elmo.",
    fields=own_fields(ElmoConfig),
    encoder=ENCODER,
    heads={
        "classifier": TASK,
        "tagger": TASK,
        "bidirectional_lm": of_head(same("lm_output/kernel", "lm_output/bias")),
    },
    architectures=architectures("Elmo", "classifier", "tagger", bidirectional_lm="ElmoForLM"),
    decode=with_tuples,
    # Tensors of the other heads.
    unread=("lm_output.", "word_embeddings.", "mix.", "task_", "classifier."),
)
