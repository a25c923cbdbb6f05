"""Settings of papers are those of a training."""

import pytest

from tfnlp.training import TrainingConfig
from tfnlp.training.step.published_settings import FINE_TUNING, PRETRAINING


@pytest.mark.parametrize("table", [PRETRAINING, FINE_TUNING])
def test_each_is_a_training(table):
    for published in table.values():
        config = TrainingConfig(**published.settings)
        assert config.epsilon == 1e-6 and config.schedule == "linear"
        assert published.source.partition(":")[2]


def test_warm_ups_are_the_papers_shares():
    steps = {
        "bert_base": (10_000, 1_000_000),
        "roberta_base": (24_000, 500_000),
        "roberta_large": (30_000, 500_000),
        "deberta_v3_base": (10_000, 1_000_000),
        "xlnet_large": (40_000, 500_000),
        "electra_base": (10_000, 766_000),
        "electra_large": (10_000, 400_000),
        "albert": (3_125, 125_000),
    }
    for name, (warmup, total) in steps.items():
        share = PRETRAINING[name].settings["warmup_share"]
        assert share == pytest.approx(warmup / total, abs=1e-4)
        assert f"{total:,} steps" in PRETRAINING[name].source
