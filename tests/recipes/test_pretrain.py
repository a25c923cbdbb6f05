"""Pretraining from the shell, for each objective, and on to a fine-tuning."""

import json

import pytest

from tests.grammar_corpus import make_reviews
from tests.recipes.test_recipes import run  # noqa: F401
from tfnlp.checkpoints import read_head

SMALL = ("--num_layers=1", "--hidden_dim=16", "--num_heads=2", "--vocabulary_size=300")
FLAGS = ("--batch_size=8", "--max_length=32", "--learning_rate=1e-3")
# Their flags, and the losses that are logged apart.
OBJECTIVES = {
    "masked_lm": (["--hide=words"], ()),
    "next_sentence": ([], ("masked_lm_loss", "next_sentence_loss")),
    "sentence_order": (["--family=albert"], ("masked_lm_loss", "sentence_order_loss")),
    "replaced_tokens": (
        ["--family=electra", "--generator_size=0.5"],
        ("generator_loss", "discriminator_loss"),
    ),
    "permutation_lm": (["--family=xlnet", "--memory_length=8"], ()),
    "causal_lm": (["--family=transformer_xl", "--memory_length=8"], ()),
}


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
def test_every_objective(objective, texts, run, tmp_path):  # noqa: F811
    flags, losses = OBJECTIVES[objective]
    flags = [f"--objective={objective}", *flags, *SMALL, *FLAGS, "--steps_per_epoch=4"]
    flags += [f"--corpus={texts}/corpus.txt", f"--dev={texts}/dev.txt", "--epochs=2"]
    run("pretrain", *flags, f"--output_dir={tmp_path}/run")
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    assert len(metrics) == 2
    for name in ("loss", *losses):
        assert metrics[1][name] < 60 and f"val_{name}" in metrics[1]
    assert read_head(tmp_path / "run/best") is not None
