"""Entities from the shell: fine-tuned, predicted, pretrained with, and what is refused."""

import json

import numpy as np
import pytest

from tests.grammar_corpus import write_reviews
from tests.knowledge.small_wordnet import write_wordnet
from tests.recipes.conftest import SMALL
from tests.recipes.refusals import check_refusals
from tfnlp.baselines import WordVectors
from tfnlp.checkpoints import load_model, read_config
from tfnlp.knowledge import load_entity_tokenizer

NOUNS = ["thing", "film", "story", "cast", "ending", "camera_work"]
FLAGS = ("--batch_size=16", "--epochs=1", "--max_length=24")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with reviews, WordNet of a few nouns, and their vectors."""
    pytest.importorskip("nltk")
    folder = tmp_path_factory.mktemp("entities")
    write_reviews(folder, train=64, dev=16, test=0)
    write_wordnet(folder / "wordnet", NOUNS)
    vectors = np.random.default_rng(0).normal(size=(len(NOUNS), 8))
    WordVectors([f"{noun}.n.01" for noun in NOUNS], vectors).save(folder / "vectors.bin")
    WordVectors(["x"], np.ones((1, 8))).save(folder / "others.bin")
    (folder / "korean.tsv").write_text("영화\tRelatedTo\t배우\n", encoding="utf-8")
    WordVectors(["영화"], np.ones((1, 8))).save(folder / "korean.bin")
    (folder / "broken.bin").write_text("film\n")
    return folder


def test_a_classifier_goes_on_from_denoised_entities(place, run, refused, tmp_path):
    files = [f"--{name}={place}/{name}.tsv" for name in ("train", "dev")]
    entities = [f"--entity_vectors={place}/vectors.bin", f"--graph={place}/wordnet"]
    entities += ["--format=wordnet"]
    denoised, first = tmp_path / "denoised", tmp_path / "first"
    corpus = [f"--corpus={place}/train.tsv", f"--dev={place}/dev.tsv", *FLAGS]
    corpus += ["--objective=denoising_entities"]
    flags = [*corpus, *entities, *SMALL, f"--output_dir={denoised}"]
    run("pretrain", *flags)
    figures = json.loads((denoised / "figures.json").read_text())
    assert 0 <= figures["val_entity_accuracy"] <= 1 and figures["val_entity_loss"] > 0
    assert "is complete" in run("pretrain", *flags).stderr

    start = f"--model_dir={denoised}/best"
    flags = [*files, *FLAGS, start, f"--output_dir={first}"]
    done = run("finetune_classifier", *flags)
    assert "Gradients do not exist" not in done.stderr
    config = read_config(first / "best")
    assert (config.model_type, config.num_entities, config.entity_dim) == ("knowledge_bert", 7, 8)
    table = load_model(first / "best", "classifier").get_layer("entity_embeddings").embeddings
    row = load_entity_tokenizer(first / "best").entities["film"]
    stored = WordVectors.load(place / "vectors.bin")
    np.testing.assert_allclose(table[row], stored["film.n.01"], atol=1e-6)

    answers = run("predict", f"--model={first}/best", f"--input={place}/dev.tsv").stderr
    best = json.loads((first / "figures.json").read_text())["dev_accuracy"]
    assert f"{best:.4f}" in answers
    error = refused("export_tflite", f"--model_dir={first}/best", f"--output_dir={tmp_path}")
    assert "reads entities beside the tokens" in error
    wrong = [*corpus[:-1], f"--model_dir={denoised}/best", f"--output_dir={tmp_path}/d"]
    assert "--objective=denoising_entities" in refused("pretrain", *wrong)


def test_entities_that_do_not_fit_are_told_before_tensorflow(place):
    start = [f"--train={place}/train.tsv", f"--dev={place}/dev.tsv", "--output_dir=runs/x"]
    vectors = f"--entity_vectors={place}/vectors.bin"
    wordnet = f"--graph={place}/wordnet --format=wordnet"
    korean = f"--graph={place}/korean.tsv"
    cases = {
        vectors: "has no effect without --graph",
        "--morphemes": "--morphemes=true has no effect without --entity_vectors",
        wordnet: "has no effect without --entity_vectors",
        f"{vectors} --graph={place} --format=wordnet": "install WordNet 3.0",
        f"--entity_vectors={place}/broken.bin {wordnet}": "broken.bin begins with b'film',",
        f"--entity_vectors={place}/others.bin {wordnet}": "None of the 1 vectors, such as x,",
        f"{vectors} {wordnet}": "",
        f"--entity_vectors={place}/korean.bin {korean} --morphemes": "",
    }
    check_refusals("finetune_classifier", start, cases)
    cases = {
        f"{vectors} {wordnet}": "has no effect beside --objective=masked_lm",
        f"{vectors} {wordnet} --objective=denoising_entities": "",
    }
    check_refusals("pretrain", [f"--corpus={place}/train.tsv", "--output_dir=runs/x"], cases)
