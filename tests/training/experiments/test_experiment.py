"""The order of a training, which every kind of it has."""

import dataclasses

import keras

from tfnlp.training import Experiment, Splits, TrainingConfig


@dataclasses.dataclass
class Recorded(Experiment):
    """Records the calls of its methods."""

    def __post_init__(self):
        self.calls = []

    def check(self):
        self.calls.append("check")

    def encode(self):
        self.calls.append("encode")
        return {name: len(examples) for name, examples in self.data.parts().items()}

    def build(self):
        self.calls.append(f"build for {self.batches}")
        return "trainer"

    def fit(self):
        self.calls.append(f"fit {self.trainer}")

    save = fingerprints = None

    def evaluate(self):
        return {"accuracy": 1.0}

    def report(self, figures):
        self.calls.append(f"report {figures}")


def test_an_experiment_encodes_builds_fits_evaluates_reports_and_logs(monkeypatch):
    model, data = {"generator": keras.Sequential()}, Splits([1, 2], None, 16, [3])
    experiment = Recorded("task", model, "tokenizer", data, TrainingConfig(), None)
    log = lambda run, config, figures: experiment.calls.append(f"log {figures}")  # noqa: E731
    monkeypatch.setattr("tfnlp.training.experiments.experiment.log_scores", log)
    assert experiment.run_all() == {"accuracy": 1.0}
    sizes = {"train": 2, "test": 1}
    assert experiment.calls == [
        *("check", "encode", f"build for {sizes}", "fit trainer"),
        *("report {'accuracy': 1.0}", "log {'accuracy': 1.0}"),
    ]


def test_splits_are_those_of_their_parts():
    splits = Splits([1], [2], 16, [3], {"web": [4]})
    parts = splits.parts()
    assert parts == {"train": [1], "dev": [2], "dev_web": [4], "test": [3]}
    assert Splits.from_parts(parts, 16) == splits
