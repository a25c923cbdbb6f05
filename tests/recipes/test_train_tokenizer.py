"""Tokenizers are trained from the shell."""

import json

from tfnlp.text import load_tokenizer


def test_tokenizers_are_trained(corpus, run, refused, tmp_path):
    texts = corpus[1].removeprefix("--dev=")
    config = tmp_path / "t" / "config.json"
    config.parent.mkdir()
    config.write_text('{"model_type": "bert", "hidden_size": 32}')
    flags = [f"--input={texts}", "--vocabulary_size=320", f"--output_dir={tmp_path / 't'}"]
    error = refused("train_tokenizer", "--kind=unigram", "--family=xlnet", *flags)
    assert "family 'bert' and the tokenizer one for 'xlnet'" in error
    done = run("train_tokenizer", *flags, f"--dev={texts}")
    found = [line.partition(" ")[2] for line in done.stderr.splitlines() if "unknown" in line]
    assert len(found) == 2 and found[0] == found[1]
    assert json.loads(config.read_text()) == {"model_type": "bert", "hidden_size": 32}
    config.unlink()
    for kind in ("bpe", "unigram"):
        run("train_tokenizer", f"--kind={kind}", *flags)
        loaded = load_tokenizer(config.parent)
        assert loaded.vocabulary_size <= 320
        assert loaded.family == {"bpe": "roberta", "unigram": "albert"}[kind]
