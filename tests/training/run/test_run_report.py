"""Figures, curves and the model card of a run."""

import json
import math

import keras

from tfnlp.training import RunFolder
from tfnlp.training.run.run_report import TaskFacts, write_report
from tfnlp.utils.files import json_text, write_json

NAN = math.nan


def test_figures_that_are_no_numbers_are_null(tmp_path):
    run = RunFolder(tmp_path / "run", {})
    run.log({"epoch": 1, "loss": 0.5, "val_x": 0.5})
    run.log({"epoch": 2, "loss": 0.4, "val_x": NAN})
    write_report(run, {"dev_x": NAN, "test_x": -math.inf, "parameters": 3}, metric="x")
    text = (run.path / "figures.json").read_text()
    assert json.loads(text) == {"dev_x": None, "test_x": None, "parameters": 3}
    card = (run.path / "README.md").read_text()
    assert "| dev x | no finite number |" in card and "| test x | no finite number |" in card
    assert json_text({"a": [1.5, (NAN, {"b": math.inf})]}) == '{"a": [1.5, [null, {"b": null}]]}'
    assert (run.path / "curves.png").stat().st_size > 1000


def test_the_card_tells_the_model_that_was_trained(tmp_path, caplog):
    flags = {"max_length": 16, "epochs": 3, "pair_column": None}
    run = RunFolder(tmp_path / "run", flags)
    sizes = {"hidden_size": 8, "num_hidden_layers": 6, "num_attention_heads": 2}
    write_json(run.best / "config.json", {"model_type": "bert", **sizes})
    epochs = [{"epoch": n, "loss": 0.5, "val_accuracy": 0.5} for n in (1, 2)]
    run._write_metrics([m | {"time": 0.0, "seconds": 1000.4} for m in epochs])
    scores = {"parameters": 1234, "dev_accuracy": 0.75, "dev_only_answer": "O"}
    figures = scores | {"dev_baseline_accuracy": 0.5}
    kept = "1 of 2, by the highest val_accuracy"
    with caplog.at_level("INFO", "absl"):
        write_report(run, figures, facts=TaskFacts(examples={"train": 12345, "dev": 6}, kept=kept))
    assert f"best epoch ({kept})" in caplog.text
    assert caplog.text.index("A baseline has no model") < caplog.text.index("dev_baseline_acc")
    card = (run.path / "README.md").read_text()
    for line in (
        *("parameters | 1,234 | ", "dev accuracy | 0.7500 | 0.5000", "dev only answer | O | "),
        *("family | bert", "num_layers | 6", "hidden_dim | 8", "max_length | 512"),
        f"epoch that is kept | {kept}",
        *("train examples | 12,345", "dev examples | 6", "seconds of training | 2,001"),
        *("end of training | 1970-01-01 00:00 UTC", f"keras | {keras.__version__}"),
    ):
        assert f"\n| {line} |\n" in card
    assert "baseline accuracy" not in card
    plot = "\n![Loss and score by epoch](curves.png)\n"
    assert (run.best / "README.md").read_text() == card.replace(f"{plot}\n", "\n", 1) != card
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page and page.count("<svg") == 1
    assert '<tr><th scope="row">dev accuracy</th><td>0.7500</td><td>0.5000</td></tr>' in page
    assert '<tr><th scope="row">2</th><td>0.5</td><td>0.5</td></tr>' in page  # of an epoch
    lines = card.split("## Made with")[1].strip().splitlines()
    table = ["| flag | value |", "| --- | --- |", "| max_length | 16 |", "| epochs | 3 |"]
    assert lines[:5] == [*table, ""]


def test_every_set_that_gets_one_answer_is_warned_of(tmp_path, caplog):
    figures = {"dev_only_answer": "O", "dev_web/only_answer": "O", "teacher_dev_only_answer": "B"}
    write_report(RunFolder(tmp_path / "run", {}), figures)
    for found in ("dev gets one answer, O", "dev web gets one answer, O", "teacher dev gets one"):
        assert caplog.text.count(f"All of {found}") == 1
