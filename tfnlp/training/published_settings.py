"""Settings of the optimizer that papers trained their models with, by the models' names.

A warm-up is a share of the paper's steps, so that it scales with the length of a training. Batches
and steps are the user's own: `source` has the paper's.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Published:
    """Fields of a `TrainingConfig` from a paper.

    Args:
        source: the paper, its batches and steps, in words.
        settings: {field: value}.
    """

    source: str
    settings: dict


ADAM = {
    "optimizer": "adamw",
    "schedule": "linear",
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-6,
    "weight_decay": 0.01,
    "clip_norm": 1.0,
}
# fairseq, in which RoBERTa was trained, clips at 0: not at all.
ROBERTA = ADAM | {"beta_2": 0.98, "clip_norm": 0.0}
BERT = "Devlin et al. 2019, appendix A.2: 1,000,000 steps of 256 texts"
PRETRAINING = {
    "bert_base": Published(
        BERT,
        ADAM | {"learning_rate": 1e-4, "warmup_share": 0.01},
    ),
    "bert_large": Published(
        BERT,
        ADAM | {"learning_rate": 1e-4, "warmup_share": 0.01},
    ),
    "roberta_base": Published(
        "Liu et al. 2019, table 9: 500,000 steps of 8,192 texts",
        ROBERTA | {"learning_rate": 6e-4, "warmup_share": 0.048},
    ),
    "roberta_large": Published(
        "Liu et al. 2019, table 9: 500,000 steps of 8,192 texts",
        ROBERTA | {"learning_rate": 4e-4, "warmup_share": 0.06},
    ),
    "electra_small": Published(
        "Clark et al. 2020, table 6: 1,000,000 steps of 128 texts",
        ADAM | {"learning_rate": 5e-4, "warmup_share": 0.01},
    ),
    "electra_base": Published(
        "Clark et al. 2020, table 6: 766,000 steps of 256 texts",
        ADAM | {"learning_rate": 2e-4, "warmup_share": 0.013},
    ),
    "electra_large": Published(
        "Clark et al. 2020, table 6: 400,000 steps of 2,048 texts",
        ADAM | {"learning_rate": 2e-4, "warmup_share": 0.025},
    ),
    "albert": Published(
        "Lan et al. 2020, section 4.1, with LAMB's warm-up for BERT: 125,000 steps of 4,096 texts",
        ADAM | {"optimizer": "lamb", "learning_rate": 1.76e-3, "warmup_share": 0.025},
    ),
}
# Where a paper searched for the rate, the middle of its grid.
ELECTRA_TASKS = ADAM | {"weight_decay": 0.0, "warmup_share": 0.1}
FINE_TUNING = {
    "bert_base": Published(
        "Devlin et al. 2019, appendix A.3, rates of 2e-5 to 5e-5: 2 to 4 epochs of batches of 32",
        ADAM | {"learning_rate": 3e-5, "warmup_share": 0.1},
    ),
    "roberta_base": Published(
        "Liu et al. 2019, table 10, rates of 1e-5 to 3e-5: 10 epochs of batches of 16 or 32",
        ROBERTA | {"learning_rate": 2e-5, "weight_decay": 0.1, "warmup_share": 0.06},
    ),
    "electra_small": Published(
        "Clark et al. 2020, table 7: 3 epochs of batches of 32, 10 for the smallest tasks",
        ELECTRA_TASKS | {"learning_rate": 3e-4, "layer_decay": 0.8},
    ),
    "electra_base": Published(
        "Clark et al. 2020, table 7: 3 epochs of batches of 32, 10 for the smallest tasks",
        ELECTRA_TASKS | {"learning_rate": 1e-4, "layer_decay": 0.8},
    ),
    "electra_large": Published(
        "Clark et al. 2020, table 7: 3 epochs of batches of 32, 10 for the smallest tasks",
        ELECTRA_TASKS | {"learning_rate": 5e-5, "layer_decay": 0.9},
    ),
}
