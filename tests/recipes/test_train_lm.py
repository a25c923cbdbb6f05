"""A recurrent language model from the shell: trained, measured, and read on."""

import json

import pytest

from tests.grammar_corpus import make_reviews
from tests.recipes.refusals import check_refusals
from tfnlp.checkpoints import read_config
from tfnlp.corpora.documents import hold_out
from tfnlp.text import load_tokenizer


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A text of 300 lines, every other of them Korean."""
    path = tmp_path_factory.mktemp("text") / "corpus.txt"
    lines = [text for text, _ in make_reviews(150, 0)]
    path.write_text("\n".join(f"{line}\n영화가 참 좋다" for line in lines), encoding="utf-8")
    return path


def test_it_learns_characters_is_measured_and_writes(corpus, run, tmp_path):
    flags = [f"--corpus={corpus}", "--hidden_dim=16", "--max_length=24", "--batch_size=8"]
    flags += ["--epochs=2", "--learning_rate=1e-2", "--notie_embeddings", "--cell=gru"]
    run("train_lm", *flags, f"--output_dir={tmp_path}/run")
    first, last = (json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open())
    assert last["val_loss"] < first["val_loss"] < 6
    config, tokenizer = read_config(tmp_path / "run/best"), load_tokenizer(tmp_path / "run/best")
    assert (config.cell, config.num_layers, config.tie_embeddings) == ("gru", 1, False)
    text = "영화가 좋다"
    assert len(tokenizer.encode([text])[0].token_ids) == len(text)

    # The last tenth, which was held out, has the loss that the training says.
    _, (held_out,) = hold_out([corpus.read_text(encoding="utf-8")])
    held = tmp_path / "held_out.txt"
    held.write_text(held_out, encoding="utf-8")
    model = f"--model_dir={tmp_path}/run/best"
    flags = (f"--texts={held}", f"--output_dir={tmp_path}/measured")
    run("evaluate_lm", model, *flags)
    measured = json.loads((tmp_path / "measured/evaluation.json").read_text())
    (figures,) = measured["figures"]
    assert measured["documents"] == "files"  # as the training parted them
    assert figures["characters"] == figures["tokens"] == len(held_out) + 1
    assert figures["cross_entropy"] == pytest.approx(last["val_loss"], rel=0.02)
    done = run("evaluate_lm", model, *flags, "--documents=lines")
    measured = json.loads((tmp_path / "measured/evaluation.json").read_text())
    assert measured["documents"] == "lines"
    assert measured["figures"][0]["texts"] == len(held_out.splitlines())
    assert "--documents=lines, but those that the model learned by files" in done.stderr
    done = run("generate", model, "--text=영화", "--max_new_tokens=4")
    assert done.stdout.startswith("영화")
    done = run("generate", model, "--text=", "--max_new_tokens=4")
    assert "no beginning" in done.stderr


def test_what_is_too_short_to_evaluate_on_is_named(corpus, refused, tmp_path):
    """The whole text is long enough."""
    (tmp_path / "short.txt").write_text("abc")
    flags = [f"--corpus={corpus}", f"--output_dir={tmp_path}/run", "--max_length=60"]
    assert "The tenth of --corpus" in refused("train_lm", *flags)
    error = refused("train_lm", *flags, f"--dev={tmp_path}/short.txt")
    assert "short.txt: There are 4" in error and "but 32 lanes of --max_length=60" in error
    assert not (tmp_path / "run").exists()


def test_refusals(corpus, tmp_path):
    start = [f"--corpus={corpus}", f"--output_dir={tmp_path}/run"]
    cases = {
        "--tokenizer=bpe --tokenizer_dir=x": "--tokenizer=bpe has no effect beside",
        "--cell=bert": "--cell=bert must be one of rnn, lstm or gru",
        "--dropout=2": "--dropout=2 must be",
    }
    check_refusals("train_lm", start, cases)
