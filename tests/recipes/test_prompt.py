"""The recipe that prompts, and the export of what writes, as a user runs them."""

import json

import pytest

from tests.grammar_corpus import make_reviews
from tests.recipes.refusals import check_refusals
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


def test_labels_are_chosen_and_a_run_goes_on(run, refused, language_model, files, tmp_path):
    flags = [f"--model_dir={language_model}", *files, TEMPLATE, "--separator=\\n", "--count=10"]
    flags += ["--label_words=negative=bad,positive=good", f"--output_dir={tmp_path}"]
    done = run("prompt", *flags, "--shots=0,1", "--draws=2")
    header, none, one = done.stdout.strip().split("\n")
    assert header.split()[:3] == ["shots", "draws", "accuracy_sum"]
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
    assert "there --seed is 0, here 1" in refused("prompt", *flags, "--seed=1")


def test_texts_are_completed(run, language_model, files, tmp_path):
    flags = [f"--model_dir={language_model}", *files, TEMPLATE, f"--output_dir={tmp_path}"]
    done = run("prompt", *flags, "--count=3", "--complete", "--max_new_tokens=4")
    assert done.stdout.split()[2:4] == ["bleu", "chrf"]
    lines = (tmp_path / "written_0_0.jsonl").read_text().splitlines()
    assert len(lines) == 3 and json.loads(lines[0])["prompt"].endswith(":")


def test_flags_that_do_not_go_together_are_one_sentence(language_model, files):
    start = [f"--model_dir={language_model}", files[1], TEMPLATE, "--output_dir=a"]
    cases = {
        f"{files[0]} --shots=a": "--shots=a must be whole numbers",
        "--complete --label_words=0=a": "--label_words=0=a has no effect beside --complete=true",
        "--shots=1": "--shots=1 has no effect without --train",
    }
    check_refusals("prompt", start, cases)


def test_bad_input_is_one_sentence(refused, language_model, files, tmp_path):
    flags = [f"--model_dir={language_model}", *files, f"--output_dir={tmp_path}", TEMPLATE]
    for wrong, message in (
        ("--template={text} is", "--template='{text} is' must have {text} once"),
        ("--shots=13", "--shots=13 must lie between 0 and 12"),
        ("--label_words=negative=a", "negative=a must give each of the labels"),
        ("--shots=12", "give fewer shots, or shorter ones"),
    ):
        assert message in refused("prompt", *flags, wrong)
