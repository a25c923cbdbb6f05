"""The recipe that shows attention, as a user runs it."""

import json
import re

import pytest

from tests.grammar_corpus import make_reviews
from tfnlp.checkpoints import save_model
from tfnlp.models import BertConfig, TransformerConfig, build_model
from tfnlp.text import train_tokenizer
from tfnlp.text.tokenizers.special_tokens import end_token_id


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folders of random models."""
    place = tmp_path_factory.mktemp("models")
    texts = [text for text, _ in make_reviews(40)]
    sizes = {"num_heads": 2, "hidden_dim": 16, "intermediate_dim": 16, "max_length": 40}
    tokenizer = train_tokenizer(texts, "wordpiece", 300)[0]
    sizes["vocabulary_size"] = tokenizer.vocabulary_size
    for name, layers in (("student", 2), ("teacher", 4)):
        model = build_model(BertConfig(**sizes, num_layers=layers), "classifier", 2)
        save_model(model, place / name, tokenizer=tokenizer, labels=["dull", "fine"])
    tokenizer = train_tokenizer(texts, "bpe", 300, "gpt2")[0]
    sizes |= {"vocabulary_size": tokenizer.vocabulary_size, "num_layers": 1}
    config = TransformerConfig(**sizes, end_token_id=end_token_id(tokenizer))
    model = build_model(config, "sequence_to_sequence")
    save_model(model, place / "translator", tokenizer=tokenizer)
    return place


def page_data(folder):
    page = (folder / "attention.html").read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))


def test_pages_of_texts_of_a_teacher_and_of_a_translator(place, run, tmp_path):
    student = [f"--model_dir={place / 'student'}", f"--output_dir={tmp_path}"]
    texts = ["--text=the film is fine", "--text=정말 fine"]
    said = run("look_at_attention", *student, *texts).stderr
    assert "Of 4 heads, " in said and re.search(r"html, 0\.\d MB", said)
    data = page_data(tmp_path)
    assert [text["texts"] for text in data["texts"]] == [["the film is fine"], ["정말 fine"]]
    assert (tmp_path / "attention.svg").read_text().startswith("<svg")
    run("look_at_attention", *student, texts[0], f"--teacher_dir={place / 'teacher'}")
    names = [entry["name"] for entry in page_data(tmp_path)["texts"][0]["entries"]]
    assert names == ["layer 1", "teacher's layer 2", "layer 2", "teacher's layer 4"]
    flags = [f"--teacher_dir={place / 'teacher'}", "--layer_map=0,2"]
    run("look_at_attention", *student, texts[0], *flags)
    names = [entry["name"] for entry in page_data(tmp_path)["texts"][0]["entries"]]
    assert names[1::2] == ["teacher's layer 1", "teacher's layer 3"]
    translator = [f"--model_dir={place / 'translator'}", f"--output_dir={tmp_path}"]
    run("look_at_attention", *translator, texts[0], "--pair=not dull")
    (text,) = page_data(tmp_path)["texts"]
    assert text["texts"] == ["the film is fine", "not dull"]
    entry = text["entries"][-1]
    assert entry["name"] == "decoder to source layer 1"
    assert "".join(text["tokens"][entry["rows"]]).startswith("not dull")


def test_flags_that_do_not_fit_are_refused(place, refused, tmp_path):
    common = [f"--model_dir={place / 'student'}", f"--output_dir={tmp_path}", "--text=a"]
    for flags, message in (
        (["--pair=b", "--pair=c"], "--pair is given 2 times and --text 1 times"),
        (["--layer_map=0,1"], "layer_map"),
        ([f"--teacher_dir={place / 'teacher'}", "--layer_map=0,9"], "layer_map=0,9 must name"),
    ):
        assert message in refused("look_at_attention", *common, *flags)
