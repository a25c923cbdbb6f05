"""Sweep files are read and checked before anything runs."""

import json

import pytest

from recipes.sweeps.sweep_file import check_sweep, read_sweep
from tfnlp.utils.errors import InputError

FLAGS = "{train: TMP/train.tsv, dev: TMP/dev.tsv, num_layers: 1, epochs: 1}"


def test_yaml_and_json_say_the_same_and_values_stay_as_they_are_written(write_sweep):
    yaml = f"""
recipe: finetune_classifier
flags: {FLAGS}
variants:
  a: &a {{labels: [no, on], learning_rate: 1e-4, dropout: null}}
  b: {{<<: *a, learning_rate: 1e-3}}
base: b
metrics: dev_accuracy, parameters
"""
    found = read_sweep(write_sweep(yaml))
    assert found.variants["b"][0].flags["learning_rate"] == "1e-3"
    assert found.variants["a"][0].flags["labels"] == "no,on"
    assert "dropout" not in found.variants["a"][0].flags
    assert (found.base, found.metrics, found.seeds) == ("b", ["dev_accuracy", "parameters"], [0])
    flags = {"train": "TMP/train.tsv", "dev": "TMP/dev.tsv", "num_layers": 1, "epochs": 1}
    own = {"labels": ["no", "on"], "learning_rate": 1e-4, "dropout": None}
    content = {
        "recipe": "finetune_classifier",
        "flags": flags,
        "variants": {"a": own, "b": own | {"learning_rate": "1e-3"}},
        "base": "b",
        "metrics": ["dev_accuracy", "parameters"],
    }
    same = read_sweep(write_sweep(json.dumps(content).replace("0.0001", "1e-4"), "sweep.json"))
    assert (same.variants, same.base, same.metrics) == (found.variants, found.base, found.metrics)


HEAD = f"recipe: finetune_classifier\nflags: {FLAGS}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("common: &no_key", "key=common is unknown"),
        (HEAD + "variants: {a: {epoch: 3}}", "variant 'a', finetune_classifier: .* --epochs?"),
        (HEAD + "variants: {a: , b: {epochs: x}}", "variant 'b', .* --epochs=x must be a whole"),
        (HEAD + "variants: {a: {train: none.tsv}}", "variant 'a', .* --train=none.tsv is no file"),
        (HEAD + "variants: {a: {model_dir: a/b/c}}", "--model_dir=a/b/c is no folder; check"),
        (HEAD + "variants: {a: {output_dir: x}}", "--output_dir is the sweep's own; leave it"),
        (HEAD + "variants:\n  a:\n  b:\n  a:\n", "line 6: not valid YAML \\('a' is there twice"),
        (HEAD + "variants: [a, b]", "`variants` must be a mapping"),
        (HEAD + "variants: {a: 3}", "variant 'a' must be a mapping, not '3'"),
        (HEAD + "variants: {a/b: }", "variant 'a/b': 'a/b' names a folder"),
        (HEAD + "variants: {a: }\nbase: c", "base=c is unknown; use one of a"),
        (HEAD + "variants: {a: }\nseeds: [0, 0]", "`seeds` must be different whole numbers"),
        (HEAD + "variants: {a: }\nseeds: [x]", "`seeds` must be different whole numbers"),
        (HEAD + "variants: {a: {b: {c: 1}}}", "step=b is unknown; use one of finetune_classifier"),
        (HEAD + "variants: {a: }\nsteps: []", "key=recipe is unknown; use one of steps, var"),
        ("recipe: finetune\nvariants: {a: }", "recipe=finetune is unknown"),
        ("recipe: export_tflite\nvariants: {a: }", "variant 'a', .* --model_dir must be given;"),
        ("recipe: finetune_regression\nvariants: {a: {label_column: b}}", "--train and --dev"),
        (HEAD + "variants: {a: , b: {seed: 3}}\nseeds: [0, 1]", "variant 'b': .* 2 seeds"),
        (HEAD + "variants: {a: , b: {steps: [{recipe: export_tflite, flags: {model_dir: TMP}}]}}"
         "\nseeds: [0, 1]", "variant 'b': the file has 2 seeds, but no"),
        ("variants: {a: }", "variant 'a' has no `steps`, and the file no `recipe`"),
        ("a: [1\nb: 2", r"yaml, line 2: not valid YAML \(expected"),
        ("- a", r"must be a mapping, not \['a'\]"),
        (HEAD + "variants: {a: }\nfolds: 5", "variant 'a', .*: Give either --dev or --fold"),
        (HEAD + "variants: {a: }\nfolds: 1", "folds=1 must be a whole number, 2 or more"),
        (HEAD + "variants: {a: }\nfolds: 5\nseeds: [0, 1]", "`folds` takes one seed, and"),
        ("recipe: finetune_tagger\nvariants: {a: }\nfolds: 5", "'a': no step reads a fold, which")
    ]
)  # fmt: skip
def test_a_wrong_file_is_one_sentence_before_anything_runs(text, said, write_sweep):
    path = write_sweep(text)
    with pytest.raises(InputError, match=said) as error:
        check_sweep(read_sweep(path))
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)
