"""Figures of steps: exact means over unequal batches, counts of tokens and of products."""

import dataclasses
import json
from typing import ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.kills import KILLS, killed_after
from tests.training.run.test_resumable_fit import CONFIG, make_batches
from tests.training.strategy_runs import TASKS, V, text_model
from tfnlp.functional.weighted_losses import cross_entropy
from tfnlp.models import AlbertConfig, build_model
from tfnlp.tasks import Tagging
from tfnlp.training import FineTuner, RunFolder, TrainingConfig, compile_model, fit
from tfnlp.training.experiments.pretraining import Pretrainer
from tfnlp.training.run.step_log import (
    SPEED,
    MatrixProducts,
    StepLog,
    peak_memory,
    product_rate,
    token_count,
)

# Graphs of so few and small steps take longer than they.
pytestmark = pytest.mark.usefixtures("no_graphs")


@pytest.fixture(autouse=True)
def _rate(monkeypatch):
    monkeypatch.setattr("tfnlp.training.run.step_log.product_rate", lambda: 1e9)


def train(folder, log_steps, stop_after=None):
    """The lines of a run of 3 epochs of 7 batches, without what differs between runs."""
    keras.utils.set_random_seed(0)
    batches = make_batches(V)
    task = TASKS["classification"]
    trainer = FineTuner(text_model(task, dropout=0.3), task)
    config = dataclasses.replace(CONFIG, log_steps=log_steps)
    compile_model(config, trainer, len(batches))
    run = RunFolder(folder, {})
    with killed_after(stop_after):
        fit(trainer, batches, config, run, lambda folder: None)
    for line in run.steps():
        assert line["tokens_per_second"] > 0 and line["peak_memory_mb"] > 0
    different = ("time", *SPEED)
    return [{k: v for k, v in line.items() if k not in different} for line in run.steps()], run


def test_lines_are_means_over_their_steps_also_of_a_killed_run(tmp_path):
    each, run = train(tmp_path / "each", 1)
    assert [line["step"] for line in each] == list(range(1, 22))
    sizes = np.array([len(labels) for e in range(3) for _, labels in make_batches(V).epoch(e)])
    assert len(sizes) == 21 and sizes.min() == 2
    losses, norms = (np.array([line[k] for line in each]) for k in ("loss", "gradient_norm"))
    for epoch, metrics in enumerate(run.metrics()):
        part = slice(7 * epoch, 7 * epoch + 7)
        mean = np.average(losses[part], weights=sizes[part])
        assert metrics["loss"] == pytest.approx(mean, rel=1e-5)
    with pytest.raises(KILLS):
        train(tmp_path / "four", 4, stop_after=14)
    # Half a line, as a kill in its writing leaves it.
    with (tmp_path / "four/metrics.jsonl").open("a") as file:
        file.write('{"step": 12, "lo')
    lines, run = train(tmp_path / "four", 4)
    assert [line["step"] for line in lines] == [4, 8, 12, 16, 20]
    assert [m["epoch"] for m in run.metrics()] == [1, 2, 3]
    for i, line in enumerate(lines):
        part = slice(4 * i, 4 * i + 4)
        mean = np.average(losses[part], weights=sizes[part])
        assert line["loss"] == pytest.approx(mean, rel=1e-4)  # windows cross the epochs' ends
        assert line["gradient_norm"] == pytest.approx(norms[part].mean(), rel=1e-4)
        assert line["learning_rate"] == each[4 * i + 3]["learning_rate"]
    events = next((tmp_path / "four/events").iterdir()).read_bytes()
    assert b"steps/gradient_norm" in events


@pytest.mark.parametrize("parts", [1, 2])
def test_a_mean_of_tokens_is_weighted_by_their_number(parts):
    """Two batches of 2 texts with unlike numbers of tags; the rate is 0."""
    inputs = {key: keras.Input((None,), dtype="int32", name=key) for key in ("token_ids",)}
    logits = keras.layers.Embedding(9, 3)(inputs["token_ids"])
    trainer = FineTuner(keras.Model(inputs, {"logits": logits}), Tagging(["O", "B-a", "I-a"]))
    compile_model(TrainingConfig(learning_rate=0.0), trainer, 2)
    trainer.accumulation_steps = parts
    ids = np.arange(16).reshape(4, 4) % 9
    tags = np.full((4, 4), -100)
    tags[0, :1], tags[1, :4], tags[2, :2], tags[3, :1] = 1, 0, 2, 1
    data = tf.data.Dataset.from_tensor_slices(({"token_ids": ids}, tags)).batch(2)
    loss = trainer.fit(data, verbose=0, shuffle=False).history["loss"][0]
    logits = trainer.model({"token_ids": ids})["logits"]
    shares = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
    real = tags >= 0
    due = -np.log(np.take_along_axis(shares, np.where(real, tags, 0)[..., None], -1)[..., 0])
    assert loss == pytest.approx(due[real].mean(), rel=1e-5)
    assert loss != pytest.approx(np.mean([due[:2][real[:2]].mean(), due[2:][real[2:]].mean()]))


def test_products_are_those_of_the_blocks_and_of_the_vocabulary(tiny_config):
    inputs = {"token_ids": np.zeros((2, 5)), "padding_mask": np.eye(2, 5)}
    batch, length, width, inner = 2, 5, 32, 64
    sizes = {"num_layers": 3, "num_heads": 4, "hidden_dim": width, "intermediate_dim": inner}
    albert = AlbertConfig(vocabulary_size=29, embedding_dim=16, **sizes)
    for config, embedding in ((tiny_config, width), (albert, 16)):
        model = build_model(config, "masked_lm")
        rows = model.get_layer("embeddings").token_table.shape[0]
        outputs = {"logits": np.zeros((2, 3, rows))}
        each = 4 * width**2 + 2 * width * inner + 2 * length * width
        due = 6 * (3 * batch * length * each + batch * 3 * rows * embedding)
        assert float(MatrixProducts(model)(inputs, outputs)) == due
    assert float(token_count(inputs)) == 2
    decoder = {"encoder_padding_mask": np.ones((2, 3)), "decoder_token_ids": np.ones((2, 4))}
    decoder["encoder_token_ids"] = np.ones((2, 3))
    assert float(token_count(decoder)) == 6 + 8


class TwoLosses:
    """An objective with two losses, by the labels' columns; -100 has no entry."""

    loss_weights: ClassVar[dict] = {"first_loss": 1.0, "second_loss": 2.0}

    def losses(self, labels, outputs, sample_weight=None):
        return {
            name: cross_entropy(labels[:, i], outputs["logits"])
            for i, name in enumerate(self.loss_weights)
        }


def test_a_line_sums_the_parts_that_its_steps_have():
    """A text may have no entity, and all steps of a line may be skipped."""
    inputs = {"token_ids": keras.Input((1,), dtype="float32", name="token_ids")}
    logits = keras.layers.Dense(2)(inputs["token_ids"])
    trainer = Pretrainer(TwoLosses(), keras.Model(inputs, {"logits": logits}))
    compile_model(TrainingConfig(learning_rate=0.0), trainer, 1)
    trainer.step_log = StepLog(trainer)
    trainer.step_log.run_clock(True)
    lines = []
    for value, labels in ((1, [0, 1]), (1, [0, -100]), (np.nan, [0, 1])):
        trainer.train_on_batch({"token_ids": np.full((3, 1), value)}, np.array([labels] * 3))
        lines.append(trainer.step_log.line())
    both, one, none = lines
    assert both["loss"] == pytest.approx(both["first_loss"] + 2 * both["second_loss"])
    assert one["loss"] == one["first_loss"] == both["first_loss"] and "second_loss" not in one
    assert not {"loss", "first_loss", "second_loss"} & none.keys()


def test_rate_and_memory_are_numbers_of_this_machine():
    assert product_rate(size=64, repeats=1) > 1e6
    assert 50 < peak_memory() < 1e6


def test_a_line_of_json_is_a_line(tmp_path):
    run = RunFolder(tmp_path / "run", {})
    run.start()
    run.log_step(3, {"loss": float("nan")})
    run.log({"epoch": 1, "loss": 0.5})
    step, epoch = map(json.loads, run.metrics_path.open())
    assert (step["step"], step["loss"]) == (3, None) and epoch["epoch"] == 1
    assert len(run.steps()) == len(run.metrics()) == 1
    run.truncate_metrics(1, 2)
    assert run.steps() == [] and len(run.metrics()) == 1
