"""Flags of a training: published settings, steps, kept checkpoints and figures of steps."""

import json

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.recipes.refusals import check_refusals
from tfnlp.training.run.step_log import SPEED


@pytest.fixture(scope="module")
def folder(teacher, corpus, run, tmp_path_factory):
    """A run of 6 of 10 steps of an epoch, as ELECTRA small is fine-tuned, but by Muon."""
    folder = tmp_path_factory.mktemp("flags") / "run"
    flags = [f"--model_dir={teacher[0] / 'best'}", *corpus, "--recipe=electra_small"]
    flags += ["--optimizer=muon", "--schedule=wsd", "--decay_share=0.5", "--max_steps=6"]
    flags += ["--log_steps=2", "--keep_every=2", "--keep_best=1", f"--output_dir={folder}"]
    done = run("finetune_classifier", *flags)
    assert "--recipe=electra_small is that of Clark et al. 2020, table 7" in done.stderr
    assert "optimizer, schedule as given" in done.stderr
    return folder


def test_published_settings_hold_but_for_what_is_given(folder):
    flags = json.loads((folder / "flags.json").read_text())
    assert flags["learning_rate"] == 3e-4 and flags["layer_decay"] == 0.8
    assert flags["epsilon"] == 1e-6 and flags["weight_decay"] == 0.0
    assert flags["optimizer"] == "muon" and flags["schedule"] == "wsd"
    assert not {"log_steps", "log_to", "keep_every", "keep_best"} & flags.keys()


def test_figures_of_steps_are_beside_those_of_epochs(folder):
    *steps, epoch = map(json.loads, (folder / "metrics.jsonl").open())
    assert [line["step"] for line in steps] == [2, 4, 6]
    assert epoch["epoch"] == 1 and {"loss", "val_loss"} < epoch.keys()
    for line in steps:
        names = {"time", "step", "loss", "learning_rate", "gradient_norm", *SPEED}
        assert line.keys() == names
        assert all(line[name] > 0 for name in ("loss", "gradient_norm", *SPEED))
    assert steps[0]["learning_rate"] == pytest.approx(3e-4)
    events = EventAccumulator(str(folder / "events")).Reload()
    told = {name: [e.step for e in events.Tensors(name)] for name in events.Tags()["tensors"]}
    assert told["steps/loss"] == [2, 4, 6] and told["val_loss"] == told["best_epoch"] == [1]
    assert steps[-1]["learning_rate"] == 0
    share = sum(line["loss"] for line in steps) / 3  # 32 texts each
    assert epoch["loss"] == pytest.approx(share, rel=1e-5)


def test_a_mean_of_kept_models_goes_on_by_another_schedule(folder, corpus, run, refused, tmp_path):
    names = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert names == ["step_2", "step_4", "step_6"]
    pattern = f"--checkpoints={folder}/checkpoints/step_*"
    mean = f"--output_dir={tmp_path}/mean"
    assert "The mean of 3 models is in" in run("average_checkpoints", pattern, mean).stderr
    for wrong, message in (
        (pattern, "mean/config.json is there"),
        ("--checkpoints=nothing/*", "is no folder"),
        (f"--checkpoints={folder}/metrics.json*", "is no folder"),
        (f"--checkpoints={folder}/best", "give two or more"),
    ):
        assert message in refused("average_checkpoints", wrong, mean)
    flags = [f"--model_dir={tmp_path}/mean", *corpus, "--schedule=polynomial", "--max_steps=2"]
    flags += ["--decay_power=3", "--end_rate_share=0.1", f"--output_dir={tmp_path}/on"]
    run("finetune_classifier", *flags)
    assert json.loads((tmp_path / "on/figures.json").read_text())["dev_accuracy"] > 0.4


def test_contradictions_are_told_without_tensorflow(corpus, tmp_path):
    cases = {
        "--max_steps=5 --epochs=4": "--epochs=4 has no effect beside --max_steps=5",
        "--warmup_steps=5 --warmup_share=0.2": "--warmup_share=0.2 has no effect beside",
        "--decay_share=0.2": "--decay_share=0.2 has no effect on --schedule=linear",
        "--schedule=wsd --decay_power=3": "--decay_power=3 has no effect on --schedule=wsd",
        "--schedule=constant --end_rate_share=0.1": "--end_rate_share=0.1 has no effect on",
        "--recipe=gpt_9": "--recipe",
        "--beta_2=1": "--beta_2=1.0 must be below 1",
        "--recipe=electra_small": "",
        "--lora_rank=4": "--lora_rank=4 keeps weights as they start",
        "--freeze_layers=1": "--freeze_layers=1 keeps weights as they start",
        "--lora_layers=all": "--lora_layers=all has no effect without LoRA",
    }
    check_refusals("finetune_classifier", [*corpus, f"--output_dir={tmp_path}/run"], cases)
    (tmp_path / "a.txt").write_text("a fine film\n")
    start = [f"--corpus={tmp_path}/a.txt", f"--output_dir={tmp_path}/run"]
    cases = {
        "--keep_best=2": "has no effect without --dev",
        "--log_to=tensorbord": "--log_to=tensorbord is unknown",
        "--recipe=roberta_base": "",
    }
    check_refusals("pretrain", start, cases)
