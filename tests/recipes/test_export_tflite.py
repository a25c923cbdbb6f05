"""Files of classifiers, pairs and language models."""

import json
import re

import pytest
from ai_edge_litert.interpreter import Interpreter

from distill.export.web_folder import build_page
from distill.runtime import TextGenerator
from tfnlp.checkpoints import load_model, save_model
from tfnlp.generation import Generator
from tfnlp.models import build_model
from tfnlp.text import load_tokenizer
from tfnlp.utils.errors import InputError


def test_a_file_has_a_card_and_golden_outputs(student, exported, refused, tmp_path):
    folder, log = exported
    (sentence,) = re.findall(r"On 64 texts, compared with float32 Keras: .*", log)
    assert f"\n{sentence}\n" in (folder / "model_card.md").read_text()
    golden = json.loads((folder / "golden.json").read_text())
    assert [example["text"] for example in golden["inputs"]] == ["the film is superb .", "dull"]
    flags = ["export_tflite", f"--model_dir={student[0] / 'best'}"]
    assert "model.tflite is there; give --overwrite" in refused(*flags, f"--output_dir={folder}")
    (tmp_path / "model_card.md").write_text("of another")
    assert "model_card.md is there" in refused(*flags, f"--output_dir={tmp_path}")
    error = refused(*flags, f"--output_dir={tmp_path / 'new'}", "--beams=2")
    assert "--beams is not for a model with the head 'classifier'" in error


def test_a_file_of_pairs_is_exported_and_measured(run, refused, one_layer, tokenizer, tmp_path):
    settings = {"pairs": True, "max_length": 16}
    pairs = build_model(one_layer, "classifier", 2)
    save_model(pairs, tmp_path / "pairs", ["no", "yes"], tokenizer, settings)
    save_model(build_model(one_layer), tmp_path / "encoder", None, tokenizer)
    data = tmp_path / "pairs.tsv"
    data.write_text("sentence\tother\na fine film\tdull\nfilm\tnot dull\nthe plot\tfilm\n")
    out, files = f"--output_dir={tmp_path}", f"--model_dir={tmp_path / 'pairs'}"
    error = refused("export_tflite", f"--model_dir={tmp_path / 'encoder'}", out)
    assert "--pooling='mean'" in error
    check = [f"--check_text={data}", "--check_pair_column=other", "--check_count=2"]
    done = run("export_tflite", files, out, "--quantization=float32", *check)
    assert "On 2 texts, compared with float32 Keras: the same label in 100.00%." in done.stderr
    measure = [f"--model={tmp_path / 'model.tflite'}", files, f"--input={data}", "--repeats=1"]
    done = run("benchmark_tflite", *measure, "--pair_column=other", out)
    assert "On 3 texts, compared with float32 Keras: the same label in 100.00%." in done.stdout
    figures = json.loads((tmp_path / "benchmark.json").read_text())
    assert figures["check"] == {"texts": 3, "agreement": 1.0}
    assert "single texts are given" in refused("benchmark_tflite", *measure, out)
    error = refused("export_tflite", files, out, f"--check_text={tmp_path}/none.tsv")
    assert "none.tsv does not exist" in error


def test_vectors_of_another_pooling_than_the_folders_are_refused(
    refused, one_layer, tokenizer, tmp_path
):
    folder = tmp_path / "encoder"
    save_model(build_model(one_layer), folder, None, tokenizer)
    kinds = {"Transformer": "", "Pooling": "1_Pooling", "LayerNorm": "2_LayerNorm"}
    modules = [{"path": p, "type": f"sentence_transformers.models.{k}"} for k, p in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = folder / "1_Pooling/config.json"
    pooling.write_text('{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}')
    flags = ["export_tflite", f"--model_dir={folder}", f"--output_dir={tmp_path / 'file'}"]
    assert "has the modules Pooling, LayerNorm" in refused(*flags, "--pooling=mean")
    (folder / "modules.json").write_text(json.dumps(modules[:2]))
    assert "has the pooling mean, not --pooling=first" in refused(*flags, "--pooling=first")
    pooling.write_text('{"pooling_mode": ["cls", "max"]}')  # of sentence-transformers 6
    assert "has the pooling first,max, not" in refused(*flags, "--pooling=first")


def test_a_language_model_is_exported(run, refused, language_model, tmp_path):
    flags = [f"--model_dir={language_model}", f"--output_dir={tmp_path}", "--quantization=float32"]
    flags += ["--overwrite"]
    ends = ["--end_token=<|endoftext|>", "--end_token=a"]
    run("export_tflite", *flags, *ends, "--beams=1", "--fixed_lengths=8", "--max_length=24")
    found = TextGenerator(tmp_path / "model.tflite", max_new_tokens=5)(["the film"])
    model, tokenizer = load_model(language_model, "causal_lm"), load_tokenizer(language_model)
    how = {"max_new_tokens": 5, "end_token": ["<|endoftext|>", "a"]}
    assert found == Generator(model, tokenizer, **how)(["the film"])
    run("export_tflite", *flags, "--litertlm")
    assert (tmp_path / "model.litertlm").read_bytes()[:8] == b"LITERTLM"
    assert "--beams=2 has no effect" in refused("export_tflite", *flags, "--litertlm", "--beams=2")
    assert "--labels is not for a model" in refused("export_tflite", *flags, "--labels=a,b")
    error = refused("export_tflite", *flags, "--max_length=99")
    assert "--max_length=99 must lie between 3 and 40" in error
    error = refused("predict", f"--model={tmp_path / 'model.tflite'}", "--text=a")
    assert "is of the kind generator" in error


def test_a_page_of_a_tagger_is_written(run, refused, one_layer, tokenizer, tmp_path):
    folder, flags = tmp_path / "tagger", [f"--output_dir={tmp_path / 'file'}", "--web"]
    save_model(build_model(one_layer, "chooser"), tmp_path / "chooser", None, tokenizer)
    assert "--web" in refused("export_tflite", f"--model_dir={tmp_path / 'chooser'}", *flags)
    try:
        build_page(tmp_path / "page")
    except (InputError, FileNotFoundError) as e:
        pytest.skip(f"npm cannot build the page: {e}")
    save_model(build_model(one_layer, "tagger", 2), folder, ["O", "B-x"], tokenizer)
    flags = [f"--model_dir={folder}", *flags, "--max_length=16", "--name=Names"]
    assert "python -m http.server" in run("export_tflite", *flags).stderr
    settings = json.loads((tmp_path / "file/web/settings.json").read_text())
    assert (settings["kind"], settings["name"], settings["max_length"]) == ("tagger", "Names", 16)
    written = Interpreter(str(tmp_path / "file/web/model.tflite")).get_signature_list()
    assert [*written] == ["run", "run_16"]
    names = {file.name for file in (tmp_path / "page").iterdir()}
    assert names < {file.name for file in (tmp_path / "file/web").iterdir()}
