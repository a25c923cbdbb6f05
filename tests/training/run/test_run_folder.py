"""Which runs a folder takes up, and what of it is overwritten."""

import fcntl
import json
import os
import shutil

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from tests.training.run.test_resumable_fit import make_batches
from tests.training.test_best_epoch import tiny_model
from tfnlp.training import RunFolder, TrainingConfig, fit
from tfnlp.training.run.run_report import write_report
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json, write_text


def train(folder, epochs, stop_after=None, overwrite=False, seed=0):
    """Trains in a folder, 7 steps an epoch; killed once so many epochs are saved, if asked."""
    config = TrainingConfig(epochs=epochs, batch_size=4, learning_rate=1e-2, warmup_share=0.2)
    run = RunFolder(folder, {"epochs": epochs, "seed": seed}, overwrite)
    model, saved = tiny_model(config), []

    def save_best(folder):
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
    assert "continues to 4" in caplog.text
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
    with pytest.raises(InputError, match="there `epochs` is 4, here 3"):
        RunFolder(copy, {"epochs": 3, "seed": 0})
    with pytest.raises(InputError, match="there `epochs` is 4, here 9"):  # which is not finished
        (broken / "state.safetensors").unlink()
        RunFolder(broken, {"epochs": 9, "seed": 0})
    with pytest.raises(InputError, match="`seed` is 0, here 1"):
        RunFolder(copy, {"epochs": 4, "seed": 1})


def test_a_run_that_stopped_early_is_not_gone_on_with(copy):
    path = copy / "state.safetensors"
    with safetensors.safe_open(str(path), framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    metadata["progress"] = metadata["progress"].replace('"stopped": false', '"stopped": true')
    assert '"stopped": true' in metadata["progress"]
    del metadata["sha256"]  # as in states of before
    safetensors.numpy.save_file(tensors, path, metadata)
    with pytest.raises(InputError, match="there `epochs` is 2, here 4"):
        RunFolder(copy, {"epochs": 4, "seed": 0})


def test_a_damaged_state_or_line_of_metrics_is_named(copy):
    path = copy / "state.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 64]))  # of the last array
    with pytest.raises(InputError, match=r"state\.safetensors is broken \(its content differs"):
        train(copy, 2)
    path.write_bytes(content)
    lines = (copy / "metrics.jsonl").read_bytes()
    (copy / "metrics.jsonl").write_bytes(lines.replace(b'"epoch": 2', b'"epoch" 2'))
    with pytest.raises(InputError, match=r"metrics\.jsonl, line 2: not valid JSON .*; delete the"):
        train(copy, 2)
    (copy / "metrics.jsonl").write_bytes(lines)
    train(copy, 2)


def test_a_run_is_overwritten_once_the_new_one_starts(copy, finished):
    write_text(copy / "best" / "vocab.txt", "old")
    write_text(copy / ".state.safetensors.1a2b3c4d", "half")
    before = sorted(copy.rglob("*"))
    run = RunFolder(copy, {"epochs": 1, "seed": 3}, overwrite=True)
    assert sorted(copy.rglob("*")) == before
    model, run = train(copy, 2, overwrite=True)
    names = {p.name for p in copy.rglob("*") if p.is_file() and "tfevents" not in p.name}
    assert names == {".lock", "flags.json", "metrics.jsonl", "state.safetensors"}
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
    with pytest.raises(InputError, match=rf"cannot be overwritten: .*{name} is no file of a run"):
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
    new.mkdir()
    run = RunFolder(copy, given)
    assert f"{new} takes its" in caplog.text
    run.start()
    write_report(run, {})
    assert "\n| model_dir | /moved/away/m |\n" in (copy / "README.md").read_text()
    RunFolder(copy, given)  # once more
    # What it was made from is looked at under the name that is given now.
    run._check_fingerprints({"model_dir": 1}, {"model_dir": 1})
    with pytest.raises(InputError, match=rf"other content of model_dir \({new}\)"):
        run._check_fingerprints({"model_dir": 1}, {"model_dir": 2})
    # Before its first state it is made from what is given now.
    (copy / "state.safetensors").unlink()
    assert RunFolder(copy, given).flags == given


def test_a_flag_that_an_earlier_version_lacked_counts_as_its_default(copy):
    old, new = {"epochs": 2, "seed": 0}, {"epochs": 2, "seed": 0, "dropped": [0.5]}
    run = RunFolder(copy, new, defaults={"dropped": (0.5,), "seed": 7})
    run.start()
    assert json.loads((copy / "flags.json").read_text()) == new
    write_json(copy / "flags.json", old)
    with pytest.raises(InputError, match=r"there `dropped` is '0.25', here '0.5'"):
        RunFolder(copy, new, defaults={"dropped": [0.25]})


def test_a_second_run_in_a_folder_is_refused(tmp_path):
    """Also by a process of its own, which frees the folder when it ends."""
    RunFolder(tmp_path / "run", {"seed": 0}).start()
    first, second = (RunFolder(tmp_path / "run", {"seed": 0}) for _ in range(2))
    said = "run is in use by another run"
    with first.alone():
        with pytest.raises(InputError, match=said), second.alone():
            pass
        with pytest.raises(InputError, match=said):
            RunFolder(tmp_path / "run", {"seed": 0}, overwrite=True)
    with second.alone():
        pass
    with (tmp_path / "run/.lock").open() as lock:  # as another process holds it
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match=said):
            RunFolder(tmp_path / "run", {"seed": 0})
    RunFolder(tmp_path / "run", {"seed": 0}, overwrite=True).start()
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [".lock", "flags.json"]


def test_a_run_does_not_go_on_from_another_that_came_in_between(tmp_path):
    """Both found an empty folder, and the second was through before the first began."""
    first, second = (RunFolder(tmp_path / "run", {"labels": x}) for x in (["a", "b"], ["b", "a"]))
    with second.alone():
        second.start()
        second.save_state({}, {}, {"epoch": 1}, {})
        assert second.load_state({}, {}) == ({"epoch": 1}, {})
    with first.alone(), pytest.raises(InputError, match="there `labels` is 'b,a', here 'a,b'"):
        first.load_state({}, {})
    with pytest.raises(InputError, match="there `beams` is None, here 4"):
        RunFolder(tmp_path / "run", {"labels": ["b", "a"], "beams": 4})
