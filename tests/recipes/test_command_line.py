"""The recipes' `--help`, and what they say of a command line that is wrong."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

from tests.recipes.refusals import refusals

ROOT = pathlib.Path(__file__).parents[2]
RECIPES = sorted(
    path.stem
    for path in (ROOT / "recipes").glob("*.py")
    if "entry_point.run(" in path.read_text(encoding="utf-8")
)


def run(recipe, *flags):
    return subprocess.run(
        [sys.executable, "-m", f"recipes.{recipe}", *flags],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def defined(recipe):
    """Return the flags that importing a recipe defines: all, and those that must be given."""
    code = f"""
import absl.app, absl.flags, absl.logging
flags, before = absl.flags.FLAGS, set(absl.flags.FLAGS)
import recipes.{recipe}
names = {{*flags}} - before
print(*names)
print(*(n for n in names if not all(v.checker(None) for v in flags[n].validators)))
"""
    lines = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT)
    return tuple(set(line.split()) for line in lines.split("\n")[:2])


@pytest.mark.quick
@pytest.mark.parametrize("recipe", RECIPES)
def test_help_shows_all_flags_of_the_recipes_and_no_others(recipe):
    done = run(recipe, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    shown = re.findall(r"^  --(?:\[no\])?(\w+)  ", done.stdout, re.M)
    expected, required = defined(recipe)
    assert sorted(shown) == sorted(expected)
    assert set(shown[: len(required)]) == required
    assert ("\nRequired:\n" in done.stdout) == bool(required)
    source = (ROOT / "recipes" / f"{recipe}.py").read_text()
    assert done.stdout.startswith(
        ast.get_docstring(ast.parse(source), clean=False).strip() + "\n\n"
    )
    assert f"python -m recipes.{recipe}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    if required:
        done = run(recipe)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("Error: --") and line.endswith(
            " must be given; --help explains all flags."
        )
        assert set(re.findall(r"--(\w+)", line)) == required | {"help"}


def test_help_by_its_other_names_says_groups_bounds_choices_and_defaults():
    texts = [run("distill_classifier", flag).stdout for flag in ("--help", "-h", "--helpshort")]
    assert texts[0] == texts[1] == texts[2]
    text = " ".join(texts[0].split())
    titles = ("Required:", "Distillation:", "Training:", "Data:", "Score:")
    assert sorted(titles, key=text.index) == list(titles)
    for shown in (
        "Longest input in tokens; the rest is cut. [a whole number, 3 or more; default: 128]",
        "[a number from 0 to 1; default: 0.1]",
        "[one of float32, mixed_bfloat16 or mixed_float16; default: float32]",
        "--[no]initialize Start from the teacher's weights where widths agree. [default: true]",
        "if not given. [values with commas between]",
    ):
        assert shown in text
    full = run("distill_classifier", "--helpfull")
    assert "--warmup_share" in full.stdout and "--[no]logtostderr" in full.stdout


DISTIL = "--teacher_dir=t --train={0} --dev={0} --output_dir=o "
TUNE = "--train={0} --dev={0} --output_dir=o "


@pytest.mark.parametrize(
    ("recipe", "given", "said"),
    [
        ("finetune_classifier", "--train={0} --dev=no.tsv --output_dir=o", "no.tsv does not exis"),
        ("distill_general", "--teacher_dir=t --texts={0},no.txt --output_dir=o", "no.txt does no"),
        ("finetune_tagger", TUNE + "--model_dir=m --family=bert", "--family=bert has no effect b"),
        (
            "finetune_chooser",
            TUNE + "--sparsity=0.5 --clusters=4",
            "--clusters=4 has no effect be",
        ),
        ("distill_tagger", DISTIL + "--sparsity_pattern=2:4", "--sparsity_pattern=2:4 has no eff"),
        ("distill_answerer", DISTIL + "--student_dir=s --size=x", "--size=x has no effect beside"),
        (
            "distill_chooser",
            DISTIL + "--tokenizer_dir=a --keep_tokens=9",
            "--keep_tokens=9 has no ",
        ),
        (
            "export_tflite",
            "--model_dir=m --output_dir=o --fixed_lengths=a",
            "--fixed_lengths=a mu",
        ),
        (
            "export_tflite",
            "--model_dir=m --output_dir=o --calibration_text={0}",
            "--calibration_t",
        ),
    ],
)
def test_flags_that_do_not_fit_are_told_before_tensorflow_is_imported(
    recipe, given, said, tmp_path
):
    there = tmp_path / "there.tsv"
    there.write_text("sentence\tprompt\tchoice0\tlabel\na\tb\tc\t0\n")
    assert error_without_tensorflow(recipe, given.format(there)).startswith(f"Error: {said}")


def error_without_tensorflow(recipe, given):
    """Return the line with which a recipe refuses flags before any slow import."""
    code = (
        "import runpy, sys\n"
        "try:\n"
        f"    runpy.run_module('recipes.{recipe}', run_name='__main__', alter_sys=True)\n"
        "finally:\n"
        "    print([name for name in ('tensorflow', 'keras', 'torch') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", code, *given.split()]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (2, "[]\n")
    (line,) = done.stderr.splitlines()
    return line


HAS = "has no column {!r}; its header (line 1) has sentence1, label."


@pytest.mark.parametrize(
    ("recipe", "given", "said"),
    [
        ("finetune_classifier", TUNE, "--text_column=sentence: {0} " + HAS.format("sentence")),
        (
            "distill_regression",
            DISTIL + "--pair_column=",
            "--score_column=score: {0} " + HAS.format("score"),
        ),
        (
            "finetune_chooser",
            TUNE + "--prompt_column=sentence1 --choice_columns=a,label",
            "--choice_columns=a: {0} " + HAS.format("a"),
        ),
        (
            "predict",
            "--model=m --input={0} --pair_column=b",
            "--pair_column=b: {0} " + HAS.format("b"),
        ),
        (
            "train_translator",
            TUNE + "--source_column=label",
            "--target_column=target: {0} " + HAS.format("target"),
        ),
        (
            "translate",
            "--model_dir=m --input={1}",
            "--text_column=source: {1}, line 1: no field 'source'; it has sentence1, label.",
        ),
        (
            "export_tflite",
            "--model_dir=m --output_dir=o --quantization=static_int8 --calibration_text={0} "
            "--calibration_column=x",
            "--calibration_column=x: {0} " + HAS.format("x"),
        ),
        (
            "finetune_tagger",
            TUNE + "--family=distilbret",
            "--family=distilbret is unknown (did you mean distilbert?); use one of bert, roberta,",
        ),
        (
            "distill_general",
            "--teacher_dir=t --texts={0} --output_dir=o --text_column=label --family=DeBERTa_v4",
            "--family=DeBERTa_v4 is unknown (did you mean deberta_v3 or deberta_v2 or deberta?);",
        ),
        ("frontier", "--input={0} --output_dir=o", "Give either --sweep_dir or --models."),
        (
            "benchmark_tflite",
            "--model={0} --input={0} --output_dir=o",
            "Agreement needs both --model_dir and --input, and",
        ),
    ],
)
def test_columns_and_names_that_are_not_there_are_told_before_tensorflow_is_imported(
    recipe, given, said, tmp_path
):
    table, lines = tmp_path / "there.tsv", tmp_path / "there.jsonl"
    table.write_text("sentence1\tlabel\na fine film\tgood\n")
    lines.write_text('{"sentence1": "a fine film", "label": "good"}\n')
    line = error_without_tensorflow(recipe, given.format(table, lines))
    assert line.startswith(f"Error: {said.format(table, lines)}")


def test_labels_that_do_not_fit_are_told_before_tensorflow_is_imported(tmp_path):
    table = tmp_path / "there.tsv"
    table.write_text("sentence\tlabel\na fine film\tgood\na poor film\tbad\n")
    tune = [f"--train={table}", f"--dev={table}", f"--output_dir={tmp_path / 'run'}"]
    known = "which are those of the model or of --labels, or without them of the training file."
    one_class = (
        "Error: --monitor=f1 scores one class; name it as --positive_label, or take "
        "--monitor=macro_f1, the mean over classes.\n"
    )
    said = {
        "--labels=good,poor": f"Error: {table}, line 3: label 'bad' is not one of the labels "
        f"(good, poor), {known}\n",
        "--labels=good,good,bad": "Error: --labels=good,good,bad: The label 'good' is given "
        "twice; give each label once.\n",
        "--labels=good": "Error: --labels=good: There must be at least 2 labels; given: good.\n",
        "--positive_label=fine": "Error: --positive_label=fine is not one of the labels "
        "(bad, good).\n",
        "--monitor=f1": one_class,
        "--labels=good,bad": "",
        "--positive_label=good": "",
    }
    given = [[*tune, flag] for flag in said]
    assert refusals("finetune_classifier", given) == list(said.values())
    taught = ["--teacher_dir=t", *tune]
    assert refusals("distill_classifier", [[*taught, "--monitor=f1"]]) == [one_class]
    # Which labels there are, the teacher's folder says.
    assert refusals("distill_classifier", [[*taught, "--positive_label=fine"]]) == [""]


def test_columns_of_lines_of_text_and_of_labels_that_are_not_read_are_not_asked_for(tmp_path):
    table = tmp_path / "there.tsv"
    table.write_text("sentence\na fine film\n")
    (tmp_path / "there.de").write_text("Satz\nein guter Film\n")
    out = ["--model_dir=m", f"--output_dir={tmp_path}"]
    assert refusals("augment", [[f"--input={table}", *out]]) == [""]
    sides = f"{table},{tmp_path / 'there.de'}"
    given = [*(f"--{name}={sides}" for name in ("train", "dev")), *out]
    one = given[:1] + [f"--dev={table}"] + out
    passed, refused = refusals("train_translator", [given, one])
    assert passed == ""
    assert refused.startswith(f"Error: --source_column=source: {table} has no column 'source'")


def test_settings_and_malformed_files_are_refused_before_tensorflow_is_imported(tmp_path):
    files = {
        "fine.tsv": "sentence\tlabel\na\tno\nb\tyes\n",
        "scores.tsv": "sentence1\tsentence2\tscore\na\tb\t1.5\na\tb\tmuch\n",
        "choices.tsv": "prompt\tchoice0\tchoice1\tlabel\na\tb\tc\t2\n",
        "tags.conll": "the\tO\nfilm\tnoun\n\n",
        "broken.json": '{"data": [}',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    cases = {
        "finetune_classifier": [
            ("fine.tsv --xla", "--xla=True compiles the steps anew"),
            ("fine.tsv --accumulation_steps=5", "--accumulation_steps=5 must divide --batch_si"),
            ("fine.tsv --ema_decay=1", "--ema_decay=1.0 must be below 1"),
            ("fine.tsv --num_heads=3", "--num_heads=3 does not divide --hidden_dim=256"),
            ("fine.tsv --family=gru --num_heads=2", "--num_heads=2 is no field of the family gru"),
            ("fine.tsv --size=huge", "--size=huge is unknown; use one of bert_base, bert_large"),
            ("fine.tsv --size=transformer_big", "--size=transformer_big is of a translator;"),
        ],
        "finetune_regression": [("scores.tsv", "line 3: score 'much' is not a number; write")],
        "finetune_chooser": [("choices.tsv", "line 2: ")],
        "finetune_tagger": [("tags.conll", "line 2: tag 'noun' is not of BIO")],
        "finetune_answerer": [("broken.json", "broken.json")],
        "distill_chooser": [
            ("choices.tsv --teacher_dir=t --xla", "--xla=True compiles the steps anew"),
            (
                "choices.tsv --teacher_dir=t,u --teacher_weights=a,b",
                "--teacher_weights=a,b must be numbers with commas between.",
            ),
            (
                "choices.tsv --teacher_dir=t --hidden_dim=15 --num_heads=2",
                "--num_heads=2 does not divide --hidden_dim=15",
            ),
            ("choices.tsv --teacher_dir=t --size=huge", "--size=huge is unknown; use one of"),
            (
                "choices.tsv --teacher_dir=t --size=bert_base --num_heads=5",
                "--num_heads=5 does not divide --hidden_dim=768",
            ),
            ("choices.tsv --teacher_dir=t --layer_map=best", "--layer_map=best is unknown; use"),
            (
                "choices.tsv --teacher_dir=t --layer_map=1,3",
                "--layer_map=[1, 3] has 2 entries, but the student has 3 layers",
            ),
            (
                "choices.tsv --teacher_dir=t --size=bert_tiny --layer_map=1,2,3",
                "--layer_map=[1, 2, 3] has 3 entries, but the student has 2 layers",
            ),
        ],
    }
    for recipe, lines in cases.items():
        command_lines = []
        for line, _ in lines:
            name, *rest = line.split()
            splits = [f"--{split}={tmp_path / name}" for split in ("train", "dev")]
            command_lines.append([*splits, f"--output_dir={tmp_path / 'run'}", *rest])
        for refusal, (_, message) in zip(refusals(recipe, command_lines), lines, strict=True):
            assert refusal.startswith("Error: ") and refusal.count("\n") == 1
            assert message in refusal
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--trian=a"], "There is no flag --trian; did you mean --train?"),
        (["--lr=1"], "There is no flag --lr; did you mean --learning_rate?"),
        (["--num-layers=1"], "There is no flag --num-layers; did you mean --num_layers?"),
        (["--xyzzy"], "There is no flag --xyzzy; --help lists all flags."),
        (["--train"], "--train needs a value, as in --train=VALUE."),
        (["--max_length=1"], "--max_length=1 must be a whole number, 3 or more."),
        (["--seed=one: two"], "--seed=one: two must be a whole number, 0 or more."),
        (["--warmup_share=2"], "--warmup_share=2 must be a number from 0 to 1."),
        (["--precision=half"], "--precision=half must be one of float32, mixed_bfloat16 or"),
        (["--initialize=perhaps"], "--initialize=perhaps must be true or false."),
        (["--noinitialize=1"], "--noinitialize takes no value."),
        (["--train=", "--dev=b", "--output_dir=c"], "--teacher_dir and --train must be given;"),
        (["some", "--temperature=inf"], "'some' is no flag: flags begin with --, and"),
        (["--temperature=inf"], "--temperature=inf must be a number, 0.001 or more."),
    ],
)
def test_a_wrong_command_line_is_one_sentence(given, said):
    needed = [f"--{name}=a" for name in ("train", "dev", "teacher_dir", "output_dir")]
    done = run("distill_classifier", *(given if "--train=" in given else [*needed, *given]))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: {said}")
