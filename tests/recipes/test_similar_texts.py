"""Notes are indexed and found as a user does it."""

import json

import pytest

from tests.recipes.refusals import check_refusals
from tfnlp.checkpoints import save_model
from tfnlp.models import build_model

pytest.importorskip("usearch")


def test_notes_are_found_by_an_exported_file(run, one_layer, tokenizer, tmp_path):
    save_model(build_model(one_layer, "embedder"), tmp_path / "model", None, tokenizer)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/one.txt").write_text("a fine\nfilm")
    (tmp_path / "notes/two.md").write_text("the a the")
    (tmp_path / "more.tsv").write_text("text\tn\ngood good\t1\n")
    flags = [f"--index_dir={tmp_path / 'index'}", f"--model={tmp_path / 'model'}"]
    texts = f"--texts={tmp_path / 'notes'},{tmp_path / 'more.tsv'}"
    run("similar_texts", *flags, texts, "--precision=float32")
    done = run("similar_texts", *flags, texts, status=2)
    assert "--overwrite" in done.stderr
    run(
        "export_tflite",
        flags[1].replace("model=", "model_dir=", 1),
        f"--output_dir={tmp_path}",
        "--max_length=48",
        "--token_vectors",
    )
    flags[1] = f"--model={tmp_path / 'model.tflite'}"
    done = run("similar_texts", *flags, "--query=a fine film", "--query=good good", "--count=1")
    first, hit, second, other = done.stdout.splitlines()
    assert (first, second) == ("a fine film", "good good")
    assert "one.txt" in hit and hit.endswith("a fine film") and "line 2" in other
    run("similar_texts", *flags, "--query=good good", f"--output={tmp_path / 'hits.jsonl'}")
    (first, *_) = map(json.loads, (tmp_path / "hits.jsonl").read_text().splitlines())
    assert (first["query"], first["text"]) == ("good good", "good good")
    assert first["source"].endswith("line 2") and first["score"] > 0.99


def test_bad_input_is_one_sentence(tmp_path):
    flags = [f"--index_dir={tmp_path / 'index'}", f"--model={tmp_path / 'model.tflite'}"]
    check_refusals(
        "similar_texts",
        flags,
        {
            "": "--texts",
            f"--texts={tmp_path}": "no .txt or .md file",
            f"--texts={tmp_path} --count=3": "--count=3 has no effect without --query",
            "--query=a --output=x.tsv": "output=x.tsv",
        },
    )
