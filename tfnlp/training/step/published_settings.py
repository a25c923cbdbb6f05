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


def _roberta(rate, warmup_share):
    source = "Liu et al. 2019, table 9: 500,000 steps of 8,192 texts"
    return Published(source, ROBERTA | {"learning_rate": rate, "warmup_share": warmup_share})


def _adam(source, rate, warmup_share):
    return Published(source, ADAM | {"learning_rate": rate, "warmup_share": warmup_share})


def _electra(length, rate, warmup_share, rest=""):
    return _adam(f"Clark et al. 2020, table 6{rest}: {length} texts", rate, warmup_share)


def _deberta(script, rate, batch):
    source = f"Microsoft's experiments/language_model/{script}: 1,000,000 steps of {batch} texts"
    return _adam(source, rate, 0.01)


def _electra_task(rate, layer_decay):
    settings = {"weight_decay": 0.0, "warmup_share": 0.1, "layer_decay": layer_decay}
    return Published(
        "Clark et al. 2020, table 7: 3 epochs of batches of 32, 10 for the smallest tasks",
        ADAM | settings | {"learning_rate": rate},
    )


# The paper has no epsilon and no clipping: those of Google's optimization.py.
BERT = _adam("Devlin et al. 2019, appendix A.2: 1,000,000 steps of 256 texts", 1e-4, 0.01)
PRETRAINING = {
    "bert_base": BERT,
    "bert_large": BERT,
    "roberta_base": _roberta(6e-4, 0.048),
    "roberta_large": _roberta(4e-4, 0.06),
    "electra_small": _electra("1,000,000 steps of 128", 5e-4, 0.01),
    "electra_base": _electra(
        "766,000 steps of 256", 2e-4, 0.013, ", with a generator of a third of the width"
    ),
    "electra_large": _electra("400,000 steps of 2,048", 2e-4, 0.025, ", with 25 % masked"),
    # Scripts for WikiText-103, not the training of the released models.
    "deberta_base": _deberta("mlm.sh", 1e-4, 256),
    "deberta_v3_xsmall": _deberta("rtd.sh", 3e-4, 64),
    "deberta_v3_base": _deberta("rtd.sh", 1e-4, 256),
    "deberta_v3_large": _deberta("rtd.sh", 1e-4, 256),
    "xlnet_large": _adam(
        "Yang et al. 2019, pretraining hyperparameters: 500,000 steps of 8,192 texts", 4e-4, 0.08
    ),
    "albert": Published(
        "Lan et al. 2020, section 4.1, and their run_pretraining.py: 125,000 steps of 4,096 texts",
        ADAM | {"optimizer": "lamb", "learning_rate": 1.76e-3, "warmup_share": 0.025},
    ),
}
# Where a paper searched for the rate, the middle of its grid.
FINE_TUNING = {
    "bert_base": Published(
        "Devlin et al. 2019, appendix A.3, rates of 2e-5 to 5e-5: 2 to 4 epochs of batches of 32",
        ADAM | {"learning_rate": 3e-5, "warmup_share": 0.1},
    ),
    "roberta_base": Published(
        "Liu et al. 2019, table 10, rates of 1e-5 to 3e-5: 10 epochs of batches of 16 or 32",
        ROBERTA | {"learning_rate": 2e-5, "weight_decay": 0.1, "warmup_share": 0.06},
    ),
    "electra_small": _electra_task(3e-4, 0.8),
    "electra_base": _electra_task(1e-4, 0.8),
    "electra_large": _electra_task(5e-5, 0.9),
}
