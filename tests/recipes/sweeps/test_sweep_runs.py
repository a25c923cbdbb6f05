"""Sweeps run once, resume, and are tabulated."""

import fcntl
import pathlib
import sys
import textwrap

import pytest

from recipes.sweeps import sweep_runs
from recipes.sweeps.sweep_file import check_sweep, read_sweep
from recipes.sweeps.sweep_runs import check_runs, run_sweep
from recipes.sweeps.sweep_table import write_table
from tests.recipes.sweeps.test_sweep_file import FLAGS
from tests.recipes.test_sweep import run_recipe
from tfnlp.utils.errors import InputError

ROOT = pathlib.Path(__file__).parents[3]

# What runs in place of a recipe: a score of its flags, and a line for each call.
STAND_IN = """
import json, pathlib, sys
name, log, *words = sys.argv[1:]
flags = dict(word.removeprefix("--").split("=", 1) for word in words)
folder = pathlib.Path(flags["output_dir"])
with open(log, "a") as file:
    file.write(f"{name} {folder}\\n")
folder.mkdir(parents=True, exist_ok=True)
if name == "export_tflite":
    (folder / "model.tflite").write_bytes(b"x" * 1000)
    assert pathlib.Path(flags["model_dir"]).is_dir(), flags
    sys.exit()
if flags["epochs"] == "9":
    sys.exit("Error: nine epochs are too many.")
if flags["epochs"] == "5" and not (folder / "begun").exists():
    (folder / "begun").touch()
    sys.exit(130)
if flags["epochs"] == "17":
    (folder / "figures.json").write_text('{"parameters": 5000, "dev_accuracy": NaN}')
    sys.exit()
score = 0.5 + 0.1 * int(flags["epochs"]) + 0.05 * int(flags["seed"]) * int(flags["num_layers"])
(folder / "best").mkdir(exist_ok=True)
(folder / "figures.json").write_text(json.dumps({"parameters": 5000, "dev_accuracy": score}))
"""

TWO_STEPS = f"""
steps:
  - recipe: finetune_classifier
    flags: {FLAGS}
  - {{recipe: export_tflite, flags: {{model_dir: "{{run}}/finetune_classifier/best"}}}}
seeds: [0, 1]
variants:
  base:
  deep:
    num_layers: 3
    label_column: "{{sweep}}/{{variant}} {{seed}} {{other}}"
    seed: "{{seed}}"
    export_tflite: {{quantization: float16}}
"""


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Recipes are stand-ins; gives the calls so far, (recipe, folder below the sweep's) each."""
    log = tmp_path / "calls"
    log.touch()

    def command(name, flags):
        return [sys.executable, "-c", STAND_IN, name, str(log), *flags]

    monkeypatch.setattr(sweep_runs, "recipe_command", command)
    return lambda: [
        (name, path.removeprefix(f"{tmp_path / 'out'}/"))
        for name, path in (line.split(" ") for line in log.read_text().splitlines())
    ]


def test_a_sweep_runs_each_step_once_and_says_what_each_variant_adds(calls, write_sweep, tmp_path):
    out = tmp_path / "out"
    sweep = check_sweep(read_sweep(write_sweep(TWO_STEPS)))
    run = sweep.runs(out)[1]
    assert (run.variant, run.number) == ("deep", 0)
    tuning, export = (step.flags for step in run.steps)
    assert (tuning["num_layers"], tuning["seed"]) == ("3", "0")
    assert tuning["label_column"] == f"{out}/deep 0 {{other}}"
    place = f"{out}/deep/seed_0"
    folders = (f"{place}/finetune_classifier/best", f"{place}/export_tflite")
    assert (export["model_dir"], export["output_dir"]) == folders
    assert export["quantization"] == "float16"
    assert run_sweep(sweep, out) == []
    folders = [f"{v}/seed_{s}" for s in (0, 1) for v in ("base", "deep")]
    steps = ("finetune_classifier", "export_tflite")
    expected = [(step, f"{folder}/{step}") for folder in folders for step in steps]
    assert calls() == expected
    write_table(sweep, out)
    # base: 0.6 and 0.65; deep: 0.6 and 0.75; by seed they differ by 0 and 0.1.
    header, _, deep = (row.split("\t") for row in (out / "table.tsv").read_text().splitlines())
    found = dict(zip(header, deep, strict=True))
    assert (found["variant"], found["runs"], found["parameters"]) == ("deep", "2", "5000")
    assert float(found["dev_accuracy_difference"]) == pytest.approx(0.05)
    assert float(found["file_mb"]) == 0.001
    assert len((out / "runs.tsv").read_text().splitlines()) == 5
    assert (out / "variants.png").stat().st_size > 1000

    # More variants and seeds: what is there stays.
    more = TWO_STEPS.replace("[0, 1]", "[0, 1, 2]") + "  long: {epochs: 2}\n"
    sweep = check_sweep(read_sweep(write_sweep(more)))
    assert run_sweep(sweep, out) == []
    assert len(calls()) == 2 * 9 and calls()[:8] == expected
    assert run_sweep(sweep, out) == [] and len(calls()) == 2 * 9

    # The same variant with other flags is not taken for what was run.
    other = write_sweep(TWO_STEPS.replace("num_layers: 3", "num_layers: 2"))
    with pytest.raises(InputError, match=r"'deep': .*num_layers='3', here it is '2'"):
        run_sweep(check_sweep(read_sweep(other)), out)


def test_folds_are_runs_as_seeds_are(calls, write_sweep, tmp_path, capsys):
    text = f"recipe: finetune_classifier\nflags: {FLAGS.replace('dev: TMP/dev.tsv, ', '')}\n"
    text += "variants: {a: , b: {epochs: 2}}\nfolds: 3\n"
    sweep = check_sweep(read_sweep(write_sweep(text)))
    out = tmp_path / "out"
    assert [run.steps[0].flags["fold"] for run in sweep.runs(out)[::2]] == ["1/3", "2/3", "3/3"]
    assert {run.steps[0].flags["seed"] for run in sweep.runs(out)} == {"0"}
    assert run_sweep(sweep, out) == [] == run_sweep(sweep, out)
    folders = [f"{v}/fold_{k}/finetune_classifier" for k in (1, 2, 3) for v in "ab"]
    assert [path for _, path in calls()] == folders
    write_table(sweep, out)
    assert (out / "runs.tsv").read_text().startswith("variant\tfold\t")
    said = capsys.readouterr().out
    assert "0.7000" in said and "Means over folds" in said


def test_the_helps_example_trains_a_student_once_for_two_files(calls, write_sweep, tmp_path):
    text = (ROOT / "recipes/sweep.py").read_text().split("    steps:")[1].split("\nIn flags")[0]
    text = textwrap.dedent("    steps:" + text)
    text = text.replace("{...}", FLAGS.replace("}", ", teacher_dir: TMP}"))
    sweep = check_sweep(read_sweep(write_sweep(text)))
    assert run_sweep(sweep, tmp_path / "out") == []
    folders = ["student/seed_0/distill_classifier"]
    folders += [f"{variant}/seed_0/export_tflite" for variant in ("int8", "float")]
    assert [folder for _, folder in calls()] == folders
    assert [s.flags.get("quantization") for s in sweep.variants["float"]] == ["float32"]
    assert sweep.runs(tmp_path)[1].steps[0].flags["model_dir"] == f"{tmp_path}/{folders[0]}/best"


def test_a_stopped_sweep_goes_on_and_a_failed_run_stops_no_other(
    calls, write_sweep, tmp_path, caplog
):
    out = tmp_path / "out"
    text = f"recipe: finetune_classifier\nflags: {FLAGS}\n"
    text += "variants: {a: , bad: {epochs: 9}, stopped: {epochs: 5}, b: }\n"
    sweep = check_sweep(read_sweep(write_sweep(text)))
    with pytest.raises(SystemExit) as stopped:
        run_sweep(sweep, out)
    assert stopped.value.code == 130
    step = "seed_0/finetune_classifier"
    assert [path for _, path in calls()] == [f"{v}/{step}" for v in ("a", "bad", "stopped")]
    assert run_sweep(sweep, out) == ["bad, seed 0"]
    assert [path for _, path in calls()[3:]] == [f"{v}/{step}" for v in ("bad", "stopped", "b")]
    assert "bad, seed 0 failed after 0 s: finetune_classifier: nine epochs are too" in caplog.text
    with open(out / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="is in use by another sweep"):
            run_sweep(sweep, out)


def test_figures_are_of_whole_runs_and_a_table_says_which_have_none(calls, write_sweep, tmp_path):
    out = tmp_path / "out"
    text = f"""
steps:
  - {{recipe: finetune_classifier, name: teacher, flags: {FLAGS}}}
  - {{recipe: finetune_classifier, name: student, flags: {FLAGS}}}
seeds: [0, 1]
variants:
  good: {{student: {{epochs: 2}}}}
  broken: {{student: {{epochs: 9}}}}
  diverged: {{student: {{epochs: "{{seed}}7"}}}}
"""
    sweep = check_sweep(read_sweep(write_sweep(text)))
    assert run_sweep(sweep, out) == ["broken, seed 0", "broken, seed 1"]
    write_table(sweep, out)
    rows = [line.split("\t") for line in (out / "table.tsv").read_text().splitlines()]
    found = {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[1:]}
    # The teacher of a broken run has a score too, 0.6, which is not the student's.
    assert (found["broken"]["runs"], found["broken"]["dev_accuracy"]) == ("0", "")
    assert float(found["good"]["dev_accuracy"]) == pytest.approx((0.7 + 0.75) / 2)
    assert float(found["diverged"]["dev_accuracy"]) == pytest.approx(1.2)
    # A table is of the sweep as its file has it; where its folder and files are does not matter.
    moved = tmp_path / "moved"
    out.rename(moved)
    (tmp_path / "train.tsv").unlink()
    check_runs(check_sweep(read_sweep(write_sweep(text)), with_files=False), moved)
    path = write_sweep(text.replace("epochs: 2", "epochs: 3"))
    done = run_recipe(f"--sweep={path}", f"--output_dir={moved}", "--table_only")
    assert done.returncode == 2 and done.stdout == ""
    assert "holds student with epochs='2', here it is '3'" in done.stderr
