"""Pretraining from the shell, for each objective, and on to a fine-tuning."""

import contextlib
import json
import math

import numpy as np
import pytest

from recipes.flags.objective_flags import OBJECTIVES as SETTINGS
from tests.checkpoints.stored_tensors import tensors_of
from tests.grammar_corpus import make_reviews, write_reviews
from tests.recipes.processes import RECIPES
from tests.recipes.refusals import check_refusals
from tfnlp import families, objectives
from tfnlp.checkpoints import read_head, read_task_settings, save_model
from tfnlp.configs import FAMILIES, config_by_name
from tfnlp.knowledge import EntityTokenizer
from tfnlp.models import build_model
from tfnlp.text import SpellingTokenizer
from tfnlp.utils.errors import InputError

SMALL = ("--num_layers=1", "--hidden_dim=16", "--num_heads=2", "--vocabulary_size=300")
FLAGS = ("--batch_size=8", "--max_length=32", "--learning_rate=1e-3")
# Their flags, and the losses that are logged apart. Next sentences are as the order of sentences
# to a recipe, causal LMs as permutation LMs.
OBJECTIVES = {
    "masked_lm": (["--masked_units=words", "--packing=masked"], ()),
    "sentence_order": (["--family=albert"], ("masked_lm_loss", "sentence_order_loss")),
    "replaced_tokens": (
        ["--family=electra", "--generator_size=0.5", "--packing=joined"],
        ("generator_loss", "discriminator_loss"),
    ),
    "permutation_lm": (["--family=xlnet", "--memory_length=8"], ()),
}
PREPARED = RECIPES.parent / "tests" / "release" / "files_of_0.1" / "corpus"
RECURRENT = ("--family=lstm", "--num_layers=1", "--hidden_dim=16", "--vocabulary_size=300")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Documents of a few sentences, to learn from and to be evaluated on."""
    folder = tmp_path_factory.mktemp("texts")
    sentences = [text for text, _ in make_reviews(240, 0)]
    for name, part in (("corpus", sentences[:180]), ("dev", sentences[180:])):
        documents = ["\n".join(part[i : i + 4]) for i in range(0, len(part), 4)]
        (folder / f"{name}.txt").write_text("\n\n".join(documents))
    return folder


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective(objective, texts, run, tmp_path):
    flags, losses = OBJECTIVES[objective]
    flags = [f"--objective={objective}", *flags, *SMALL, *FLAGS, "--steps_per_epoch=4"]
    flags += [f"--corpus={texts}/corpus.txt", f"--dev={texts}/dev.txt", "--epochs=2"]
    flags += [f"--further_dev=both={texts}/dev.txt,both={texts}/corpus.txt"]
    run("pretrain", *flags, f"--output_dir={tmp_path}/run")
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    assert len(metrics) == 2
    for name in ("loss", *losses):
        assert metrics[1][name] < 60
        assert metrics[1][f"val_{name}"] != metrics[1][f"val_both/{name}"]
    assert read_head(tmp_path / "run/best") is not None
    settings = read_task_settings(tmp_path / "run/best")
    assert (settings["documents"], settings["texts"]) == ("blank_lines", 45)
    if objective == "permutation_lm":
        # Pieces of unigram are learned otherwise each time: those of the run are kept.
        assert "is complete" in run("pretrain", *flags, f"--output_dir={tmp_path}/run").stderr
    if objective == "replaced_tokens":
        still = [flags[0], *FLAGS, f"--corpus={texts}/corpus.txt", "--learning_rate=1e-9"]
        still += [f"--model_dir={tmp_path}/run/best", f"--generator_dir={tmp_path}/run/generator"]
        run("pretrain", *still, "--steps_per_epoch=1", f"--output_dir={tmp_path}/on")
        for part in ("best", "generator"):
            old, new = (tensors_of(tmp_path / name / part) for name in ("run", "on"))
            assert max(abs(old[name] - new[name]).max() for name in old) < 1e-6


def test_an_elmo_learns_and_a_classifier_reads_its_states(texts, run, refused, tmp_path):
    sizes = ["--family=elmo", "--hidden_dim=8", "--intermediate_dim=8", "--predicted_words=50"]
    flags = ["--objective=bidirectional_lm", *FLAGS, f"--corpus={texts}/corpus.txt", "--epochs=2"]
    flags += [f"--dev={texts}/dev.txt", "--steps_per_epoch=4"]
    run("pretrain", *flags, *sizes, f"--output_dir={tmp_path}/run")
    first, metrics = (json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open())
    assert metrics["val_loss"] < first["val_loss"]
    for direction in ("forward", "backward"):
        loss = metrics[f"val_{direction}_loss"]
        assert metrics[f"val_{direction}_perplexity"] == pytest.approx(math.exp(loss), rel=1e-4)
    write_reviews(tmp_path, 40, 20, 20)
    model = f"--model_dir={tmp_path}/run/best"
    task = [f"--train={tmp_path}/train.tsv", f"--dev={tmp_path}/dev.tsv", *FLAGS, "--epochs=1"]
    run("finetune_classifier", model, *task, f"--output_dir={tmp_path}/task")
    before, after = tensors_of(tmp_path / "run/best"), tensors_of(tmp_path / "task/best")
    kept = [name for name in before if name.startswith("elmo.")]
    assert len(kept) > 20
    for name in kept:
        np.testing.assert_array_equal(before[name], after[name])
    assert np.any(after["mix.mix_weights"])
    done = run("predict", f"--model={tmp_path}/task/best", "--text=an Unheard-of film")
    assert done.stdout.split()[0] in ("positive", "negative")
    error = refused("finetune_classifier", *sizes[:1], *task, f"--output_dir={tmp_path}/a")
    assert "--family=elmo is not trained by a task" in error


def test_bad_input_is_one_sentence(texts, one_layer, tokenizer, refused, tmp_path):
    model, empty = tmp_path / "model", tmp_path / "empty.txt"
    save_model(build_model(one_layer, "masked_lm"), model, tokenizer=tokenizer)
    empty.write_text("\n\n")
    flags = [f"--model_dir={model}", f"--corpus={texts}/corpus.txt", *FLAGS]
    for wrong, message in (
        (f"--corpus={empty}", "empty.txt"),
        (f"--tokenizer_dir={model}", "has no effect beside --model_dir="),
        ("--max_length=4096", "is above the model's"),
        ("--generator_dir=x", "--generator_dir=x has no effect with --objective=masked_lm"),
        ("--objective=replaced_tokens", "does not fit the family 'bert'"),
    ):
        assert message in refused("pretrain", *flags, f"--output_dir={tmp_path}/a", wrong)
    flags = [*flags[1:], f"--output_dir={tmp_path}/a", "--objective=causal_lm", *RECURRENT]
    assert "--memory_length=8 has no" in refused("pretrain", *flags, "--memory_length=8")
    assert "the family 'recurrent'" in refused("pretrain", *flags, "--bidirectional")
    assert not (tmp_path / "a").exists()


def test_wrong_flags_and_files_are_told_before_tensorflow_is_imported(texts, tmp_path):
    contents = {"empty.txt": b"", "blank.txt": b"\n \n", "latin.txt": b"caf\xe9\n"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    ids, dev = PREPARED / "corpus", f"--dev={texts}/dev.txt"
    prepared = f"--corpus={ids} --tokenizer_dir={PREPARED}/tokenizer --documents=lines"
    wrong = {
        "--objective=causal_lm": "--objective=causal_lm does not fit the family bert",
        "--family=gpt2 --objective=causal_lm --memory_length=4": "--memory_length=4 has no effect",
        "--objective=replaced_tokens --family=electra --generator_dir=x": "without --model_dir",
        "--objective=denoising_entities": "needs --entity_vectors and --graph.",
        "--corpus_weights=0": "--corpus_weights=0 must be 1 positive numbers",
        f"--further_dev=a={texts}/dev.txt": "has no effect without --dev",
        f"--further_dev={texts}/dev.txt": "must be NAME=FILE",
        "--objective=causal_lm --packing=masked --memory_length=4": "--packing=masked",
        "--objective=masked_lm --masked_share=0.2": "",
        f"--dev={ids}": f"--dev={ids} is a prepared corpus",
        f"{dev} --further_dev=a={ids}": f"--further_dev=a={ids} is a prepared",
        prepared: "--documents=lines has no effect",
        f"{prepared} --dev={ids} --further_dev=a={texts}/dev.txt": "",
        f"--corpus={tmp_path}/empty.txt": "empty.txt holds no text",
        f"--corpus={tmp_path}/blank.txt": "blank.txt holds no text",
        f"--corpus={tmp_path}/folder": "folder holds no manifest.json",
        f"--corpus={tmp_path}/latin.txt": "latin.txt, line 1: byte 4 of the line is not UTF-8",
        f"--output_dir={tmp_path}/empty.txt": "empty.txt is a file; choose another folder.",
        "--model_dir=runs/a/best": "runs/a/best is no folder",
        "--model_dir=owner/model": "",
    }
    start = [f"--corpus={texts}/corpus.txt", f"--output_dir={tmp_path}/run"]
    check_refusals("pretrain", start, wrong)


def test_families_that_are_refused_at_once_are_those_that_do_not_fit():
    tokenizer = SpellingTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    finding = EntityTokenizer.of(tokenizer, {"a": 1})
    for name in SETTINGS:
        kind = getattr(objectives, name.title().replace("_", "").replace("Lm", "LM"))
        fit, objective = [], kind()
        reader = finding if objective.reads_entities else tokenizer
        for family in FAMILIES:
            with contextlib.suppress(InputError):
                objective.check(config_by_name(family), reader)
                fit.append(family)
        assert sorted(fit) == sorted(
            name_of_family
            for family in families.FAMILIES.values()
            for name_of_family in family.names
            if name in family.objectives
        )
