"""What TensorBoard, MLflow and Weights & Biases hold of a run that was killed and resumed."""

import importlib
import json
import struct

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tfnlp.training import RunFolder, TrainingConfig
from tfnlp.training.run import trackers
from tfnlp.utils.errors import InputError


class Killed(Exception):
    pass


def log_a_run(path, tracker):
    """Log a run to one tracker: it dies in its second epoch, goes on, ends and is scored."""
    run = RunFolder(path, {"train": "a.tsv"})
    config = TrainingConfig(seed=7, log_to=(tracker,))
    with run.alone():
        with pytest.raises(Killed), trackers.open_trackers(run, config) as log:
            log("step", 2, {"loss": 0.75})
            log("epoch", 1, {"val_loss": 0.5, "none": float("nan")})
            raise Killed
        with trackers.open_trackers(run, config) as log:
            log("epoch", 2, {"val_loss": 0.25})
    trackers.log_scores(run, config, {"dev_accuracy": 0.875, "dev_only_answer": "a"})
    return run, config


def test_tensorboard_has_epochs_and_steps_and_no_scores(tmp_path):
    run, _ = log_a_run(tmp_path / "run", "tensorboard")
    events = EventAccumulator(str(run.path / "events")).Reload()
    told = {
        name: {e.step: tf.make_ndarray(e.tensor_proto).item() for e in events.Tensors(name)}
        for name in events.Tags()["tensors"]
    }
    assert told == {"val_loss": {1: 0.5, 2: 0.25}, "steps/loss": {2: 0.75}}


def test_mlflow_has_one_run_with_parameters_epochs_steps_and_scores(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    run, config = log_a_run(tmp_path / "run", "mlflow")
    client = mlflow.MlflowClient()
    (tracked,) = client.search_runs(["0"])
    assert (tracked.info.run_name, tracked.info.status) == ("run", "FINISHED")
    assert tracked.data.params["train"] == "a.tsv" and tracked.data.params["seed"] == "7"
    assert tracked.data.metrics == {"val_loss": 0.25, "steps/loss": 0.75, "dev_accuracy": 0.875}
    history = client.get_metric_history(tracked.info.run_id, "val_loss")
    assert [(m.step, m.value) for m in history] == [(1, 0.5), (2, 0.25)]
    mlflow.set_tracking_uri((tmp_path / "elsewhere").as_uri())
    with pytest.raises(InputError, match=r"log_to=mlflow fails \(.*not found"):
        trackers.log_scores(run, config, {"dev_accuracy": 1.0})


def test_wandb_has_one_run_with_parameters_epochs_steps_and_scores(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="needs wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)
    log_a_run(tmp_path / "run", "wandb")
    wandb.teardown()  # its own process has written all
    files = sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 3 and len({path.name for path in files}) == 1  # the parts of one run
    records = [record for path in files for record in records_of(path)]
    config = {i.key: json.loads(i.value_json) for r in records for i in r.run.config.update}
    assert config["train"] == "a.tsv" and config["seed"] == 7
    rows = [{"/".join(i.nested_key): i.value_json for i in r.history.item} for r in records]
    rows = [{k: float(v) for k, v in row.items() if k[0] != "_"} for row in rows if row]
    assert rows == [
        {"steps/loss": 0.75, "step": 2},
        {"val_loss": 0.5, "epoch": 1},
        {"val_loss": 0.25, "epoch": 2},
    ]
    updates = [i for r in records for i in r.summary.update]
    summary = {i.key or "/".join(i.nested_key): i.value_json for i in updates}
    assert summary["dev_accuracy"] == "0.875"


def records_of(path):
    """The records of an offline file of W&B: a log in LevelDB's format, after a header."""
    proto = importlib.import_module("wandb.proto.wandb_internal_pb2")
    content, place, records = path.read_bytes(), 7, []
    while place < len(content) < 2**15:  # within a block every record is whole
        _, length, whole = struct.unpack_from("<IHB", content, place)
        assert whole == 1
        records.append(proto.Record.FromString(content[place + 7 : place + 7 + length]))
        place += 7 + length
    return records


@pytest.mark.parametrize("name, message", [("tensorbord", "did you mean"), ("wandb", "pip inst")])
def test_an_unknown_tracker_and_one_that_is_not_installed_are_refused(name, message, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=f"log_to={name} .*{message}"):
        TrainingConfig(log_to=(name,))
