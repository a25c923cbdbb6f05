"""The recipe that prompts, and the export of what writes, as a user runs them."""

import json

import pytest

from tests.grammar_corpus import make_reviews
from tests.recipes.refusals import refusals
from tfnlp.checkpoints import load_model
from tfnlp.training.run.fingerprints import model_fingerprint

TEMPLATE = "--template={text}: {label}"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    for name, start in (("train", 0), ("dev", 20)):
        rows = enumerate(make_reviews(40)[start : start + 12], start)
        lines = [f"{text.split()[0]}{i}\t{label}" for i, (text, label) in rows]
        (path / f"{name}.tsv").write_text("\n".join(["sentence\tlabel", *lines, ""]), "utf-8")
    return [f"--train={path / 'train.tsv'}", f"--input={path / 'dev.tsv'}"]


def test_labels_are_chosen_and_a_run_goes_on(run, language_model, files, tmp_path):
    flags = [f"--model_dir={language_model}", *files, TEMPLATE, "--separator=\\n", "--count=10"]
    flags += ["--label_words=negative=bad,positive=good", f"--output_dir={tmp_path}"]
    done = run("prompt", *flags, "--shots=0,1", "--draws=2")
    header, none, one = done.stdout.strip().split("\n")
    assert header.split() == [
        "shots",
        "draws",
        *(f"accuracy_{n}" for n in ("sum", "length", "prior")),
    ]
    assert none.split()[:2] == ["0", "1"] and "±" not in none
    assert one.split()[:2] == ["1", "2"] and one.count("±") == 3
    kept = json.loads((tmp_path / "prompted.json").read_text())
    assert sorted(kept["results"]) == ["0/0", "1/0", "1/1"]
    assert all(0 <= x <= 1 for scores in kept["results"].values() for x in scores.values())
    # Of other weights in that folder it would be another run.
    assert kept["settings"]["model"] == model_fingerprint(load_model(language_model, "causal_lm"))
    # A result that is there is not made again.
    kept["results"]["1/0"] = dict.fromkeys(kept["results"]["1/0"], 7.0)
    (tmp_path / "prompted.json").write_text(json.dumps(kept))
    run("prompt", *flags, "--shots=0,1", "--draws=3")
    again = json.loads((tmp_path / "prompted.json").read_text())["results"]
    assert sorted(again) == ["0/0", "1/0", "1/1", "1/2"]
    assert again["1/0"]["accuracy_sum"] == 7 and again["1/1"] == kept["results"]["1/1"]
    done = run("prompt", *flags, "--seed=1", status=2)
    assert "is of other settings: there --seed is 0, here 1" in done.stderr


def test_texts_are_completed(run, language_model, files, tmp_path):
    flags = [
        f"--model_dir={language_model}",
        *files,
        TEMPLATE,
        "--count=3",
        f"--output_dir={tmp_path}",
    ]
    done = run("prompt", *flags, "--complete", "--max_new_tokens=4")
    assert done.stdout.split()[2:4] == ["bleu", "chrf"]
    lines = (tmp_path / "written_0_0.jsonl").read_text().splitlines()
    assert len(lines) == 3 and json.loads(lines[0])["prompt"].endswith(":")


def test_flags_that_do_not_go_together_are_one_sentence(language_model, files):
    start = [f"--model_dir={language_model}", files[1], TEMPLATE, "--output_dir=a"]
    cases = [
        ([files[0], "--shots=a"], "--shots=a must be whole numbers"),
        (
            ["--complete", "--label_words=0=a"],
            "--label_words=0=a has no effect beside --complete=true",
        ),
        (["--shots=1"], "--shots=1 has no effect without --train"),
    ]
    said = refusals("prompt", [[*start, *given] for given, _ in cases])
    for (_, message), found in zip(cases, said, strict=True):
        assert message in found and found.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--template={text} is", "--template='{text} is' must have {text} once"),
        ("--shots=13", "--shots=13 must lie between 0 and 12"),
        ("--label_words=negative=a", "negative=a must give each of the labels"),
        ("--shots=12", "give fewer shots, or shorter ones"),
    ],
)
def test_bad_input_is_one_sentence(given, message, run, language_model, files, tmp_path):
    flags = [f"--model_dir={language_model}", *files, f"--output_dir={tmp_path}", TEMPLATE]
    done = run("prompt", *flags, given, status=2)
    assert message in done.stderr, done.stderr
    assert done.stderr.count("\n") <= 2
