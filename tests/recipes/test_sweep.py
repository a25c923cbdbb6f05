"""Sweeps: a file of variants is checked, run once, resumed and tabulated."""

import fcntl
import json
import math
import pathlib
import subprocess
import sys
import textwrap

import pytest

from recipes import sweep_file, sweep_runs
from recipes.sweep_file import check_sweep, read_sweep
from recipes.sweep_runs import check_runs, run_sweep
from recipes.sweep_table import write_table
from tfnlp.plots.variants import draw_variants
from tfnlp.utils.errors import InputError
from tfnlp.utils.seed_statistics import summarise_variants

ROOT = pathlib.Path(__file__).parents[2]
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


@pytest.fixture
def write(tmp_path):
    """Writes a sweep's file over a train and a dev file, and gives its path."""
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text("sentence\tlabel\na\t0\n")

    def write(text, name="sweep.yaml"):
        path = tmp_path / name
        path.write_text(text.replace("TMP", str(tmp_path)), encoding="utf-8")
        return path

    return write


FLAGS = "{train: TMP/train.tsv, dev: TMP/dev.tsv, num_layers: 1, epochs: 1}"
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


@pytest.mark.quick
def test_a_sweep_runs_each_step_once_and_says_what_each_variant_adds(
    calls, write, tmp_path, capsys
):
    out = tmp_path / "out"
    sweep = check_sweep(read_sweep(write(TWO_STEPS)))
    run = sweep.runs(out)[1]
    assert (run.variant, run.seed) == ("deep", 0)
    assert run.steps[0].flags["num_layers"] == "3" and run.steps[0].flags["seed"] == "0"
    assert run.steps[0].flags["label_column"] == f"{out}/deep 0 {{other}}"
    assert run.steps[1].flags == {
        "model_dir": f"{out}/deep/seed_0/finetune_classifier/best",
        "quantization": "float16",
        "output_dir": f"{out}/deep/seed_0/export_tflite",
    }
    assert run_sweep(sweep, out) == []
    folders = [f"{v}/seed_{s}" for s in (0, 1) for v in ("base", "deep")]
    expected = [
        (step, f"{folder}/{step}")
        for folder in folders
        for step in ("finetune_classifier", "export_tflite")
    ]
    assert calls() == expected
    write_table(sweep, out)
    # base: 0.6 and 0.65; deep: 0.6 and 0.75; by seed they differ by 0 and 0.1.
    header, base, deep = (row.split("\t") for row in (out / "table.tsv").read_text().splitlines())
    found = dict(zip(header, deep, strict=True))
    assert (found["variant"], found["runs"], found["parameters"]) == ("deep", "2", "5000")
    numbers = ("", "_error", "_difference", "_difference_error")
    for name, value in zip(numbers, (0.675, 0.075, 0.05, 0.05), strict=True):
        assert float(found[f"dev_accuracy{name}"]) == pytest.approx(value)
    assert dict(zip(header, base, strict=True))["dev_accuracy_difference"] == ""
    assert float(found["file_mb"]) == 0.001
    assert "0.6750 ± 0.0750 (+0.0500 ± 0.0500)  5,000" in capsys.readouterr().out
    assert len((out / "runs.tsv").read_text().splitlines()) == 5
    assert (out / "variants.png").stat().st_size > 1000

    # More variants and seeds: what is there stays.
    more = TWO_STEPS.replace("[0, 1]", "[0, 1, 2]") + "  long: {epochs: 2}\n"
    sweep = check_sweep(read_sweep(write(more)))
    assert run_sweep(sweep, out) == []
    assert len(calls()) == 2 * 9 and calls()[:8] == expected
    assert run_sweep(sweep, out) == [] and len(calls()) == 2 * 9

    # The same variant with other flags is not taken for what was run.
    other = check_sweep(read_sweep(write(TWO_STEPS.replace("num_layers: 3", "num_layers: 2"))))
    with pytest.raises(InputError, match=r"'deep': .*num_layers='3', here it is '2'; give the va"):
        run_sweep(other, out)


def test_the_helps_example_trains_a_student_once_for_two_files(calls, write, tmp_path):
    text = (ROOT / "recipes/sweep.py").read_text().split("    steps:")[1].split("\nIn flags")[0]
    text = textwrap.dedent("    steps:" + text)
    text = text.replace("{...}", FLAGS.replace("}", ", teacher_dir: TMP}"))
    sweep = check_sweep(read_sweep(write(text)))
    assert run_sweep(sweep, tmp_path / "out") == []
    folders = ("student/seed_0/distill_classifier", *EXPORTS)
    assert [folder for _, folder in calls()] == [*folders]
    assert [s.flags.get("quantization") for s in sweep.variants["float"]] == ["float32"]
    assert sweep.runs(tmp_path)[1].steps[0].flags["model_dir"] == f"{tmp_path}/{folders[0]}/best"


EXPORTS = ("int8/seed_0/export_tflite", "float/seed_0/export_tflite")


def test_a_stopped_sweep_goes_on_and_a_failed_run_stops_no_other(calls, write, tmp_path, caplog):
    out = tmp_path / "out"
    text = f"recipe: finetune_classifier\nflags: {FLAGS}\n"
    text += "variants: {a: , bad: {epochs: 9}, stopped: {epochs: 5}, b: }\n"
    sweep = check_sweep(read_sweep(write(text)))
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


def test_figures_are_of_whole_runs_and_a_table_says_which_have_none(
    calls, write, tmp_path, capsys
):
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
    sweep = check_sweep(read_sweep(write(text)))
    assert run_sweep(sweep, out) == ["broken, seed 0", "broken, seed 1"]
    write_table(sweep, out)
    rows = [line.split("\t") for line in (out / "table.tsv").read_text().splitlines()]
    found = {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[1:]}
    # The teacher of a broken run has a score too, 0.6, which is not the student's.
    assert (found["broken"]["runs"], found["broken"]["dev_accuracy"]) == ("0", "")
    assert float(found["good"]["dev_accuracy"]) == pytest.approx((0.7 + 0.75) / 2)
    assert float(found["diverged"]["dev_accuracy"]) == pytest.approx(1.2)
    counts = {name: row["dev_accuracy_seeds"] for name, row in found.items()}
    assert counts == {"good": "2", "broken": "0", "diverged": "1"}
    assert found["diverged"]["parameters_seeds"] == "2"
    said = capsys.readouterr().out
    assert "1.2000 of 1 (+0.5000)" in said and "the others have no number" in said
    assert "0.7250 ± 0.0250 " in said

    # A table is of the sweep as its file has it; where its folder and files are does not matter.
    moved = tmp_path / "moved"
    out.rename(moved)
    (tmp_path / "train.tsv").unlink()
    check_runs(check_sweep(read_sweep(write(text)), with_files=False), moved)
    path = write(text.replace("epochs: 2", "epochs: 3"))
    done = run_recipe(f"--sweep={path}", f"--output_dir={moved}", "--table_only")
    assert done.returncode == 2 and done.stdout == ""
    assert "holds student with epochs='2', here it is '3'; give the variant" in done.stderr


def run_recipe(*flags):
    return subprocess.run(
        [sys.executable, "-m", "recipes.sweep", *flags],
        check=False,
        capture_output=True,
        text=True,
        cwd=sweep_file.__file__.rpartition("/recipes/")[0],
    )


def test_yaml_and_json_say_the_same_and_values_stay_as_they_are_written(write):
    yaml = """
common: &no_key
"""
    with pytest.raises(InputError, match="key=common is unknown"):
        read_sweep(write(yaml))
    yaml = f"""
recipe: finetune_classifier
flags: {FLAGS}
variants:
  a: &a {{labels: [no, on], learning_rate: 1e-4, dropout: null}}
  b: {{<<: *a, learning_rate: 1e-3}}
base: b
metrics: dev_accuracy, parameters
"""
    found = read_sweep(write(yaml))
    assert found.variants["b"][0].flags["learning_rate"] == "1e-3"
    assert found.variants["a"][0].flags["labels"] == "no,on"
    assert "dropout" not in found.variants["a"][0].flags
    assert (found.base, found.metrics, found.seeds) == ("b", ["dev_accuracy", "parameters"], [0])
    flags = {"train": "TMP/train.tsv", "dev": "TMP/dev.tsv", "num_layers": 1, "epochs": 1}
    own = {"labels": ["no", "on"], "learning_rate": 1e-4, "dropout": None}
    content = {
        "recipe": "finetune_classifier",
        "flags": flags,
        "variants": {"a": own, "b": own | {"learning_rate": "1e-3"}},
        "base": "b",
        "metrics": ["dev_accuracy", "parameters"],
    }
    same = read_sweep(write(json.dumps(content).replace("0.0001", "1e-4"), "sweep.json"))
    assert (same.variants, same.base, same.metrics) == (found.variants, found.base, found.metrics)


HEAD = f"recipe: finetune_classifier\nflags: {FLAGS}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "variants: {a: {epoch: 3}}", "variant 'a', finetune_classifier: There is no flag "
         "--epoch; did you mean --epochs?"),
        (HEAD + "variants: {a: , b: {epochs: x}}", "variant 'b', .* --epochs=x must be a whole"),
        (HEAD + "variants: {a: {train: none.tsv}}", "variant 'a', .* --train=none.tsv is no file"),
        (HEAD + "variants: {a: {model_dir: a/b/c}}", "--model_dir=a/b/c is no folder; check"),
        (HEAD + "variants: {a: {output_dir: x}}", "--output_dir is the sweep's own; leave it"),
        (HEAD + "variants:\n  a:\n  b:\n  a:\n", "line 6: not valid YAML \\('a' is there twice"),
        (HEAD + "variants: [a, b]", "`variants` must be a mapping"),
        (HEAD + "variants: {a: 3}", "variant 'a' must be a mapping, not '3'"),
        (HEAD + "variants: {a/b: }", "variant 'a/b': 'a/b' names a folder"),
        (HEAD + "variants: {a: }\nbase: c", "base=c is unknown; use one of a"),
        (HEAD + "variants: {a: }\nseeds: [0, 0]", "`seeds` must be different whole numbers"),
        (HEAD + "variants: {a: }\nseeds: [x]", "`seeds` must be different whole numbers, such as"),
        (HEAD + "variants: {a: {b: {c: 1}}}", "step=b is unknown; use one of finetune_classifier"),
        (HEAD + "variants: {a: }\nsteps: []", "key=recipe is unknown; use one of steps, var"),
        ("recipe: finetune\nvariants: {a: }", "recipe=finetune is unknown"),
        ("recipe: export_tflite\nvariants: {a: }", "variant 'a', .* --model_dir must be given;"),
        ("recipe: export_tflite\nflags: {model_dir: TMP}\nvariants: {a: }\nseeds: [0, 1]",
         "has 2 seeds, but no step reads one"),
        (HEAD + "variants: {a: , b: {seed: 3}}\nseeds: [0, 1]",
         "variant 'b': the file has 2 seeds, but no step reads one, so .*; leave `seeds`"),
        (HEAD + "variants: {a: , b: {steps: [{recipe: export_tflite, flags: {model_dir: TMP}}]}}"
         "\nseeds: [0, 1]", "variant 'b': the file has 2 seeds, but no"),
        ("variants: {a: }", "variant 'a' has no `steps`, and the file no `recipe`"),
        ("a: [1\nb: 2", r"yaml, line 2: not valid YAML \(expected"),
        ("- a", r"must be a mapping, not \['a'\]"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_sentence_before_anything_runs(text, said, write):
    path = write(text)
    with pytest.raises(InputError, match=said) as error:
        check_sweep(read_sweep(path))
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


def test_the_recipe_says_so_with_status_2(write, tmp_path):
    path = write('{"variants": {"a": {}, "a": {}}}', "sweep.json")
    done = run_recipe(f"--sweep={path}", f"--output_dir={tmp_path}/o")
    twice = "'a' is there twice; give each name once"
    said = f"Error: {path}, line 1: not valid YAML ({twice}).\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert not (tmp_path / "o").exists()


def test_figures_of_variants_are_paired_by_seed():
    runs = {
        "base": {0: {"x": 1.0}, 1: {"x": 2.0}, 2: {"x": 6.0}},
        "more": {0: {"x": 1.5}, 1: {"x": 3.5}, 3: {"x": 100.0}},
        "none": {0: {"y": 1.0}},
    }
    found = summarise_variants(runs, "base", ["x"])
    base = found["base"]["x"]
    assert (base.estimate.mean, base.estimate.count, base.difference) == (3.0, 3, None)
    assert base.estimate.error == pytest.approx(math.sqrt((4 + 1 + 9) / 2 / 3))
    more = found["more"]["x"]
    assert (more.difference.mean, more.difference.error, more.difference.count) == (1.0, 0.5, 2)
    assert found["none"]["x"].estimate is None and found["none"]["x"].difference is None
    (axes,) = draw_variants(runs, found, "base").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["base", "more", "none"]
    assert list(axes.lines[0].get_xdata()) == [1.0, 2.0, 6.0]
