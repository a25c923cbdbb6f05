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
from tfnlp import families
from tfnlp.checkpoints import read_head, read_task_settings
from tfnlp.configs import FAMILIES, config_by_name
from tfnlp.knowledge import EntityTokenizer
from tfnlp.objectives import (
    BidirectionalLM,
    CausalLM,
    DenoisingEntities,
    MaskedLM,
    NextSentence,
    PermutationLM,
    ReplacedTokens,
    SentenceOrder,
)
from tfnlp.text import SpellingTokenizer, load_tokenizer
from tfnlp.utils.errors import InputError

SMALL = ("--num_layers=1", "--hidden_dim=16", "--num_heads=2", "--vocabulary_size=300")
FLAGS = ("--batch_size=8", "--max_length=32", "--learning_rate=1e-3")
# Their flags, and the losses that are logged apart.
OBJECTIVES = {
    "masked_lm": (["--masked_units=words", "--packing=masked"], ()),
    "next_sentence": ([], ("masked_lm_loss", "next_sentence_loss")),
    "sentence_order": (["--family=albert"], ("masked_lm_loss", "sentence_order_loss")),
    "replaced_tokens": (
        ["--family=electra", "--generator_size=0.5", "--packing=joined"],
        ("generator_loss", "discriminator_loss"),
    ),
    "permutation_lm": (["--family=xlnet", "--memory_length=8"], ()),
    "causal_lm": (["--family=transformer_xl", "--memory_length=8"], ()),
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
    if objective == "permutation_lm":
        # Pieces of unigram are learned otherwise each time: those of the run are kept.
        assert "is complete" in run("pretrain", *flags, f"--output_dir={tmp_path}/run").stderr


def test_a_recurrent_network_learns_is_measured_and_writes(texts, run, tmp_path):
    flags = ["--objective=causal_lm", *FLAGS, f"--corpus={texts}/corpus.txt", "--epochs=2"]
    flags += [f"--dev={texts}/dev.txt", f"--output_dir={tmp_path}/run"]
    run("pretrain", *flags, *RECURRENT)
    first, last = (json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open())
    assert last["val_loss"] < first["val_loss"]
    tokenizer = load_tokenizer(tmp_path / "run/best")
    assert tokenizer.decode(tokenizer.encode(["A Film\n 영화"])[0].token_ids) == "A Film\n 영화"
    model = f"--model_dir={tmp_path}/run/best"
    done = run("evaluate_lm", model, f"--texts={texts}/dev.txt")
    assert done.stdout.split()[:2] == ["texts", "characters"]
    settings = read_task_settings(tmp_path / "run/best")
    assert settings == {"max_length": 32, "documents": "blank_lines", "texts": 45}
    wrong = [*flags[:-1], *RECURRENT, "--memory_length=8", f"--output_dir={tmp_path}/a"]
    done = run("pretrain", *wrong, status=2)
    assert "--memory_length=8 has no effect on a recurrent model" in done.stderr
    done = run("pretrain", *wrong[:-2], "--bidirectional", wrong[-1], status=2)
    assert "does not fit the family 'recurrent'" in done.stderr
    done = run("generate", model, "--text=the film", "--max_new_tokens=4")
    assert done.stdout.startswith("the film") and len(done.stdout) > len("the film\n")


def test_an_elmo_learns_and_a_classifier_reads_its_states(texts, run, tmp_path):
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
    done = run("finetune_classifier", *sizes[:1], *task, f"--output_dir={tmp_path}/a", status=2)
    assert "--family=elmo is not trained by a task, which would read random" in done.stderr


@pytest.fixture(scope="module")
def first(texts, run, tmp_path_factory):
    """The folder of a small BERT."""
    folder = tmp_path_factory.mktemp("first") / "run"
    flags = [f"--corpus={texts}/corpus.txt", *FLAGS, *SMALL, "--steps_per_epoch=2"]
    run("pretrain", *flags, f"--output_dir={folder}")
    return folder


def test_a_folder_is_pretrained_further_and_fine_tuned(texts, first, run, tmp_path):
    flags = [f"--corpus={texts}/corpus.txt", *FLAGS, f"--output_dir={tmp_path}/domain"]
    run("pretrain", f"--model_dir={first}/best", *flags, "--masked_units=spans")
    figures = json.loads((tmp_path / "domain/figures.json").read_text())
    assert figures["texts"] > 20 and figures["steps"] > 2
    assert "| objective | masked_lm |" in (tmp_path / "domain/README.md").read_text()

    write_reviews(tmp_path, train=40, dev=8, test=0)
    task = [f"--train={tmp_path}/train.tsv", f"--dev={tmp_path}/dev.tsv", "--epochs=1"]
    task += [f"--model_dir={tmp_path}/domain/best", f"--output_dir={tmp_path}/fine"]
    run("finetune_classifier", *task)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("--corpus={folder}/empty.txt", "empty.txt"),
        ("--tokenizer_dir={first}/best", "has no effect beside --model_dir="),
        ("--max_length=4096", "is above the model's"),
        ("--generator_dir=x", "--generator_dir=x has no effect with --objective=masked_lm"),
        ("--corpus={prepared} --documents=lines", "--documents=lines has no effect beside --corp"),
        ("--objective=replaced_tokens", "does not fit the family 'bert'"),
    ],
)
def test_bad_input_is_one_sentence(wrong, message, texts, first, run, tmp_path):
    (tmp_path / "empty.txt").write_text("\n\n")
    folders = {"first": first, "prepared": tmp_path}
    flags = [f"--model_dir={first}/best", f"--corpus={texts}/corpus.txt", *FLAGS]
    flags += [f"--output_dir={tmp_path}/a", *wrong.format(folder=tmp_path, **folders).split()]
    (line,) = run("pretrain", *flags, status=2).stderr.splitlines()
    assert line.startswith("Error: ") and message in line
    assert not (tmp_path / "a").exists()


def test_bad_flags_of_a_model_from_scratch_are_told_before_tensorflow_is_imported(texts):
    wrong = {
        "--objective=causal_lm": "--objective=causal_lm does not fit the family bert; give --fam",
        "--family=gpt2 --objective=causal_lm --memory_length=4": (
            "--memory_length=4 has no effect on a gpt2 model, which has no memory;"
        ),
        "--objective=replaced_tokens --family=electra --generator_dir=x": (
            "--generator_dir=x has no effect without --model_dir; give it"
        ),
        "--objective=denoising_entities": "needs --entity_vectors and --graph.",
        "--corpus_weights=0": "--corpus_weights=0 must be 1 positive numbers",
        f"--further_dev=a={texts}/dev.txt": "has no effect without --dev; give it",
        f"--further_dev={texts}/dev.txt": "must be NAME=FILE, with a name of letters",
        "--objective=causal_lm --packing=masked --memory_length=4": (
            "--memory_length=4 has no effect beside --packing=masked, where documents"
        ),
        "--objective=masked_lm --masked_share=0.2": "",
    }
    start = [f"--corpus={texts}/corpus.txt", "--output_dir=a"]
    check_refusals("pretrain", start, wrong)


def test_files_and_folders_that_are_wrong_are_told_before_tensorflow_is_imported(texts, tmp_path):
    contents = {
        "empty.txt": b"",
        "blank.txt": b"\n \n",
        "latin.txt": "caf\xe9\n".encode("latin-1"),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    empty, folder = f"{tmp_path}/empty.txt", f"{tmp_path}/folder"
    nothing = f"{folder} holds no manifest.json; give a folder that prepare_corpus made"
    corpus, output = f"--corpus={texts}/corpus.txt", f"--output_dir={tmp_path}/run"
    ids, dev = PREPARED / "corpus", f"--dev={texts}/dev.txt"
    prepared = f"--corpus={ids} --dev={ids} --tokenizer_dir={PREPARED}/tokenizer --documents=lines"
    wrong = {
        f"{corpus} {output} --dev={ids}": f"--dev={ids} is a prepared corpus, of ids alone; give",
        f"{corpus} {output} {dev} --further_dev=a={ids}": f"--further_dev=a={ids} is a prepared",
        f"{prepared} {output} --further_dev=a={texts}/dev.txt": "",
        f"--corpus={empty} {output}": f"{empty} holds no text; give files with text.",
        f"--corpus={tmp_path}/blank.txt {output}": "blank.txt holds no text; give",
        f"--corpus={folder} {output}": nothing,
        f"--corpus={tmp_path}/latin.txt {output}": (
            "latin.txt, line 1: byte 4 of the line is not UTF-8; save the file as UTF-8."
        ),
        f"{corpus} --output_dir={empty}": f"{empty} is a file; choose another folder.",
        f"{corpus} {output} --model_dir=runs/a/best": "runs/a/best is no folder; give that of a c",
        f"{corpus} {output} --model_dir=owner/model": "",
    }
    check_refusals("pretrain", [], wrong)


def test_families_that_are_refused_at_once_are_those_that_do_not_fit():
    tokenizer = SpellingTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    objectives = {
        "masked_lm": MaskedLM(),
        "next_sentence": NextSentence(),
        "sentence_order": SentenceOrder(),
        "denoising_entities": DenoisingEntities(),
        "replaced_tokens": ReplacedTokens(),
        "permutation_lm": PermutationLM(),
        "causal_lm": CausalLM(),
        "bidirectional_lm": BidirectionalLM(),
    }
    finding = EntityTokenizer.of(tokenizer, {"a": 1})
    further = {"denoising_entities", "bidirectional_lm"}
    assert objectives.keys() == SETTINGS.keys() == {*OBJECTIVES, *further}
    for name, objective in objectives.items():
        fit, reader = [], finding if objective.reads_entities else tokenizer
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


def test_electra_goes_on_from_its_folders(texts, run, tmp_path):
    """The discriminator's, and its generator's; or with a new generator."""
    flags = ["--objective=replaced_tokens", f"--corpus={texts}/corpus.txt", *FLAGS]
    flags += ["--steps_per_epoch=1", "--learning_rate=1e-9"]
    scratch = ["--family=electra", "--generator_size=0.5", *SMALL]
    first, second, third = (tmp_path / name for name in "abc")
    run("pretrain", *flags, *scratch, f"--output_dir={first}")
    flags += [f"--model_dir={first}/best"]
    run("pretrain", *flags, f"--generator_dir={first}/generator", f"--output_dir={second}")
    run("pretrain", *flags, f"--output_dir={third}")

    def far(one, other):
        assert one.keys() == other.keys()
        return max(abs(one[name] - other[name]).max() for name in one)

    for part in ("best", "generator"):
        assert far(tensors_of(first / part), tensors_of(second / part)) < 1e-6
    assert far(tensors_of(first / "best"), tensors_of(third / "best")) < 1e-6
    # Of the other width, and random but for the table.
    new, old = tensors_of(third / "generator"), tensors_of(first / "generator")
    name = "electra.embeddings.word_embeddings.weight"
    assert abs(new[name] - old[name]).max() < 1e-6
    assert new["generator_predictions.dense.weight"].shape != (
        old["generator_predictions.dense.weight"].shape
    )
    assert json.loads((third / "flags.json").read_text())["generator_dir"] is None
