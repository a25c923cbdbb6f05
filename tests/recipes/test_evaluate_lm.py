"""The recipe that measures language models, as a user runs it."""

import json

import pytest

from tests.grammar_corpus import make_reviews
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import BertConfig, TransformerXLConfig, build_model
from tfnlp.text.tokenizers.tokenizer_loading import train_tokenizer

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folders of random models, and a file of texts."""
    place = tmp_path_factory.mktemp("models")
    texts = [text for text, _ in make_reviews(40)]
    (place / "texts.txt").write_text("\n".join([*texts, "", ""]), encoding="utf-8")
    (place / "empty.txt").write_text("\n")
    wordpiece = train_tokenizer(texts, "wordpiece", 200)[0]
    bert = BertConfig(**SIZES, vocabulary_size=wordpiece.vocabulary_size, max_length=64)
    save_model(build_model(bert, "masked_lm"), place / "bert", tokenizer=wordpiece)
    save_model(build_model(bert, "pretraining"), place / "pairs", tokenizer=wordpiece)
    read = {"tokenizer": wordpiece, "task_settings": {"max_length": 8}}
    save_model(load_model(place / "bert", "masked_lm"), place / "short", **read)
    save_model(build_model(bert, "classifier", 2), place / "classifier", ["a", "b"], wordpiece)
    config = TransformerXLConfig(**SIZES, vocabulary_size=257, cutoffs=(), memory_length=16)
    save_model(build_model(config, "causal_lm"), place / "transformer_xl")
    characters = train_tokenizer(texts, "bpe", 257, "gpt2")[0]
    characters.save(place / "characters")
    save_model(build_model(config, "causal_lm"), place / "of_characters", tokenizer=characters)
    return place


def test_language_models_are_measured(place, run, tmp_path):
    texts = f"--texts={place / 'texts.txt'}"

    def measure(model, *flags):
        out = tmp_path / model
        where = (f"--model_dir={place / model}", texts, f"--output_dir={out}")
        done = run("evaluate_lm", *where, *flags)
        written = json.loads((out / "evaluation.json").read_text())
        assert written["model"] == str(place / model)
        header, *lines = done.stdout.splitlines()
        assert header.split() == list(written["figures"][0])
        assert len(lines) == len(written["figures"])
        return written["figures"]

    flags = (f"--tokenizer_dir={place / 'characters'}", "--max_length=16")
    none, some = measure("transformer_xl", *flags, "--memory_lengths=0,8")
    assert (none["memory_length"], some["memory_length"]) == (0, 8)
    assert none["perplexity"] != some["perplexity"]
    assert none["tokens"] == some["tokens"]
    (own,) = measure("of_characters", "--max_length=16")
    assert own["tokens"] == none["tokens"]
    assert none["tokens"] > none["characters"] > none["texts"] == 40  # Korean letters are 3 bytes
    for model in ("bert", "pairs"):  # what learned of pairs too predicts tokens as well
        (row,) = measure(model, "--masked_share=0.3")
        assert {"masked_accuracy", "pseudo_perplexity"} < row.keys() and row["tokens"] > 300
    # As much at a time as the model was pretrained on, if its folder says so.
    (short,) = measure("bert", "--nopseudo_perplexity", "--max_length=8")
    assert measure("short", "--nopseudo_perplexity") == [short]


def test_bad_input_is_one_sentence(place, refused):
    texts, own = f"--texts={place / 'texts.txt'}", f"--tokenizer_dir={place / 'characters'}"
    for model, flags, message in [
        ("classifier", [], "has the head 'classifier'"),
        ("bert", ["--stride=4"], "--stride=4 has no effect on a masked language model"),
        ("bert", ["--max_length=65"], "--max_length=65 is above the model's 64 positions"),
        ("transformer_xl", [], "there is no tokenizer for the family 'transfo-xl'"),
        ("transformer_xl", [own, "--stride=9"], "--stride=9 has no effect with a memory"),
    ]:
        assert message in refused("evaluate_lm", f"--model_dir={place / model}", texts, *flags)
