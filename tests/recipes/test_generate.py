"""The recipe that generates, as a user runs it."""

import json

import pytest

from tests.grammar_corpus import make_reviews
from tests.recipes.test_recipes import run  # noqa: F401
from tfnlp.checkpoints import save_model
from tfnlp.models import Gpt2Config, build_model
from tfnlp.text import train_tokenizer

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 64}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    texts = [text for text, _ in make_reviews(100)]
    tokenizer = train_tokenizer(texts, "bpe", 300, "gpt2")[0]
    sizes = SIZES | {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 40}
    save_model(build_model(Gpt2Config(**sizes), "causal_lm"), path, tokenizer=tokenizer)
    # Where `transformers` finds what ends a text.
    config = json.loads((path / "config.json").read_text())
    assert config["eos_token_id"] == tokenizer.token_id("<|endoftext|>") < 300
    return path


def test_texts_are_printed_or_written(run, folder, tmp_path):  # noqa: F811
    flags = [f"--model_dir={folder}", "--max_new_tokens=5"]
    done = run("generate", *flags, "--text=the film", "--text=결말은")
    first, second = done.stdout.strip("\n").split("\n")
    assert first.startswith("the film") and second.startswith("결말은")

    prompts = tmp_path / "prompts.txt"
    prompts.write_text("the film\nthe cast\n", encoding="utf-8")
    output = tmp_path / "written.jsonl"
    flags += [f"--input={prompts}", f"--output={output}"]
    run("generate", *flags, "--search=beam", "--beams=3", "--continuations=2", "--forbid=film")
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["prompt"] for line in lines] == ["the film"] * 2 + ["the cast"] * 2
    assert lines[0]["score"] >= lines[1]["score"] and len(lines[0]["token_ids"]) == 5


def test_bad_input_is_one_sentence(run, folder):  # noqa: F811
    for given, message in (
        (["--text=a", "--search=beam", "--beams=0"], "--beams=0 must be at least 1"),
        (["--text=a", "--search=sample", "--top_p=0"], "--top_p=0.0 must be above 0"),
        (["--text=a", "--top_p=0.5"], "--top_p=0.5 has no effect with --search=greedy"),
        (["--text=" + "a " * 60], "are more than the model's 40 positions"),
        (["--text=a", "--end_token=[END]"], "The tokenizer lacks --end_token='[END]'"),
        (["--text=a", "--output=x.txt"], "--output=x.txt must end in .tsv or .jsonl"),
    ):
        done = run("generate", f"--model_dir={folder}", *given, status=2)
        assert message in done.stderr, done.stderr
        assert done.stderr.count("\n") <= 2
