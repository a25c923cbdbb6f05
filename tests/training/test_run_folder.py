"""Which runs a folder takes up, and what of it is overwritten."""

import json
import os
import shutil
import sys

import keras
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import tfnlp
from tests.training.test_best_epoch import tiny_model
from tests.training.test_resumable_fit import make_batches
from tfnlp.training import RunFolder, TrainingConfig, fit
from tfnlp.training.run_report import write_report
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json, write_text


def train(folder, epochs, stop_after=None, overwrite=False, seed=0):
    """Trains in a folder, 7 steps an epoch; killed once so many epochs are saved, if asked."""
    config = TrainingConfig(epochs=epochs, batch_size=4, learning_rate=1e-2, warmup_share=0.2)
    run = RunFolder(folder, {"epochs": epochs, "seed": seed}, overwrite)
    model, saved = tiny_model(config), []

    def save_best():
        saved.append(len(run.metrics()))
        if len(saved) == stop_after:
            raise KeyboardInterrupt

    fit(model, make_batches(25), config, run, save_best)
    return model, run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 2 epochs."""
    return train(tmp_path_factory.mktemp("finished") / "run", 2)[1].path


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def test_a_finished_run_goes_on_with_more_epochs(copy, tmp_path, caplog):
    weights, (model, _) = [], train(copy, 2)  # nothing to train: the weights as they were
    weights.append(model.get_weights()[0])
    broken = shutil.copytree(copy, tmp_path / "broken")
    with caplog.at_level("INFO", "absl"):
        model, run = train(copy, 4)
    assert (
        "is finished after 2 epochs and goes on to 4, by the learning rates that 4" in caplog.text
    )
    weights.append(model.get_weights()[0])
    assert np.abs(weights[1] - weights[0]).max() > 1e-3
    assert [m["epoch"] for m in run.metrics()] == [1, 2, 3, 4]
    # Of 14 steps 3 warm up, of 28 steps 6.
    rates = [m["learning_rate"] for m in run.metrics()]
    assert rates == pytest.approx([0.01 * 7 / 11, 0.0, 0.01 * 7 / 22, 0.0])
    assert run.flags == {"epochs": 4, "seed": 0, "earlier_epochs": [2]}
    assert json.loads((copy / "flags.json").read_text()) == run.flags
    with pytest.raises(KeyboardInterrupt):
        train(broken, 4, stop_after=1)
    # What a compressor counts by are the steps of the first training.
    assert RunFolder(copy, {"epochs": 6, "seed": 0}).first_epochs(6) == 2
    again, run = train(broken, 4)
    np.testing.assert_array_equal(again.get_weights()[0], weights[1])
    assert run.flags["earlier_epochs"] == [2]
    labels = RunFolder(tmp_path / "labels", {"labels": ["a", "b"]})
    with labels.alone():
        labels.start()
    with pytest.raises(InputError, match="there `labels` is 'a,b', here 'b,a'; give another"):
        RunFolder(tmp_path / "labels", {"labels": ["b", "a"]})
    with pytest.raises(InputError, match="there `epochs` is 4, here 3"):
        RunFolder(copy, {"epochs": 3, "seed": 0})
    with pytest.raises(InputError, match="there `epochs` is 4, here 9"):  # which is not finished
        (broken / "state.safetensors").unlink()
        RunFolder(broken, {"epochs": 9, "seed": 0})
    with pytest.raises(InputError, match=r"`seed` is 0, here 1; .* or `overwrite` to delete it"):
        RunFolder(copy, {"epochs": 4, "seed": 1})


def test_a_run_that_stopped_early_is_not_gone_on_with(copy):
    path = copy / "state.safetensors"
    with safetensors.safe_open(str(path), framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    metadata["progress"] = metadata["progress"].replace('"stopped": false', '"stopped": true')
    assert '"stopped": true' in metadata["progress"]
    safetensors.numpy.save_file(tensors, path, metadata)
    with pytest.raises(InputError, match="there `epochs` is 2, here 4"):
        RunFolder(copy, {"epochs": 4, "seed": 0})


def test_a_run_is_overwritten_once_the_new_one_starts(copy, finished):
    write_text(copy / "best" / "vocab.txt", "old")
    write_text(copy / ".state.safetensors.1a2b3c4d", "half")
    before = sorted(copy.rglob("*"))
    run = RunFolder(copy, {"epochs": 1, "seed": 3}, overwrite=True)
    assert sorted(copy.rglob("*")) == before
    model, run = train(copy, 2, overwrite=True)
    assert sorted(p.name for p in copy.rglob("*") if p.is_file() and "tfevents" not in p.name) == [
        ".lock",
        "flags.json",
        "metrics.jsonl",
        "state.safetensors",
    ]
    assert len(list((copy / "events").iterdir())) == 1
    (first, _), (second, _) = train(finished, 2), train(copy, 2)
    np.testing.assert_array_equal(first.get_weights()[0], model.get_weights()[0])
    np.testing.assert_array_equal(second.get_weights()[0], model.get_weights()[0])
    assert [m["epoch"] for m in run.metrics()] == [1, 2]


@pytest.mark.parametrize("name", ["notes.md", "best/model.tflite", "best/deep/config.json", "b"])
def test_other_files_are_not_overwritten(name, copy, finished):
    path = copy / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name == "b":
        path.symlink_to(finished)
    else:
        path.write_text("mine")
    with pytest.raises(
        InputError, match=rf"cannot be overwritten, as .*{name} is no file of a run"
    ):
        RunFolder(copy, {"epochs": 2, "seed": 0}, overwrite=True)
    (copy / "flags.json").unlink()
    with pytest.raises(InputError, match="is not a run's folder"):
        RunFolder(copy, {"epochs": 2, "seed": 0}, overwrite=True)


def test_paths_of_one_file_are_one_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("m", "other"):
        os.mkdir(name)
    os.symlink("m", "link")
    write_json("run/flags.json", {"model_dir": "m"})
    for same in ("./m", "m/", "../" + tmp_path.name + "/m", str(tmp_path / "m"), "link"):
        assert RunFolder("run", {"model_dir": same}).flags == {"model_dir": same}
    for other in ("other", "missing", None):
        with pytest.raises(InputError, match="there `model_dir` is 'm', here"):
            RunFolder("run", {"model_dir": other})
    write_json("run/flags.json", {"model_dir": "hub/name"})
    with pytest.raises(InputError, match="there `model_dir` is 'hub/name', here 'm'"):
        RunFolder("run", {"model_dir": "m"})


def test_a_run_keeps_the_name_of_what_it_was_made_from(copy, tmp_path, caplog):
    old, new = {"epochs": 2, "seed": 0, "model_dir": "/moved/away/m"}, tmp_path / "m"
    write_json(copy / "flags.json", old)
    given = old | {"model_dir": str(new)}
    with pytest.raises(InputError, match="there `model_dir` is '/moved/away/m', here"):
        RunFolder(copy, given)
    new.mkdir()
    run = RunFolder(copy, given)
    said = f"`model_dir` of the run in {copy} was /moved/away/m, which is gone; {new} takes its"
    assert said in caplog.text
    run.start()
    write_report(run, {})
    assert "\n| model_dir | /moved/away/m |\n" in (copy / "README.md").read_text()
    RunFolder(copy, given)  # once more
    # What it was made from is looked at under the name that is given now.
    run._check_made_from({"model_dir": 1}, {"model_dir": 1})
    with pytest.raises(InputError, match=rf"other content of model_dir \({new}\)"):
        run._check_made_from({"model_dir": 1}, {"model_dir": 2})
    # Before its first state it is made from what is given now.
    (copy / "state.safetensors").unlink()
    assert RunFolder(copy, given).flags == given


def test_the_card_tells_the_model_that_was_trained(tmp_path):
    flags = {"max_length": 16, "epochs": 3, "pair_column": None}
    run = RunFolder(tmp_path / "run", flags)
    sizes = {"hidden_size": 8, "num_hidden_layers": 6, "num_attention_heads": 2}
    write_json(run.best / "config.json", {"model_type": "bert", **sizes})
    run.log({"epoch": 1, "loss": 0.5, "val_accuracy": 0.5})
    run.log({"epoch": 2, "loss": 0.5, "val_accuracy": 0.5})
    records = [m | {"time": 0.0, "seconds": 1000.4} for m in run.metrics()]
    run._write_metrics(records)
    scores = {"parameters": 1234, "dev_accuracy": 0.75, "dev_only_answer": "O"}
    figures = scores | {"dev_baseline_accuracy": 0.5}
    write_report(run, figures, examples={"train": 12345, "dev": 6})
    card = (run.path / "README.md").read_text()
    model, made_with = card.split("## Model")[1].split("## Made with")
    model, trained = model.split("## Trained")
    for line in (
        "train examples | 12,345",
        "dev examples | 6",
        "seconds of training | 2,001",
        "end of training | 1970-01-01 00:00 UTC",
        f"tfnlp | {tfnlp.__version__}",
        f"keras | {keras.__version__}",
        f"tensorflow | {tf.__version__}",
        f"python | {sys.version.split()[0]}",
    ):
        assert f"\n| {line} |\n" in trained
    assert "\n| dev accuracy | 0.7500 | 0.5000 |\n" in card
    assert "\n| dev only answer | O |  |\n" in card and "baseline accuracy" not in card
    plot = "\n![Loss and score by epoch](curves.png)\n"
    assert (run.best / "README.md").read_text() == card.replace(f"{plot}\n", "\n", 1)
    assert plot in card
    for line in ("family | bert", "num_layers | 6", "hidden_dim | 8", "max_length | 512"):
        assert f"\n| {line} |\n" in model
    assert "| parameters | 1,234 |" in card
    lines = [line for line in made_with.splitlines() if line.startswith("| ")]
    assert lines == ["| flag | value |", "| --- | --- |", "| max_length | 16 |", "| epochs | 3 |"]
