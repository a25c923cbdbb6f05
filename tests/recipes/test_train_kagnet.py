"""The recipe of KagNet, as a user runs it, with a small graph."""

import json

import keras
import pytest

from tests.recipes.refusals import check_refusals
from tfnlp.checkpoints import save_model
from tfnlp.models import build_model

CHOICES = [("the film is", "fine", "dull", 0), ("정말 지루하다", "dull", "fine", 0)]
FEW = ["--max_edges=2", "--max_pairs=2", "--max_paths=1", "--epochs=1"]


@pytest.fixture(scope="module")
def place(one_layer, tokenizer, tmp_path_factory):
    """A folder with a chooser, a classifier, a graph and questions."""
    place = tmp_path_factory.mktemp("kagnet")
    save_model(build_model(one_layer, "chooser"), place / "chooser", tokenizer=tokenizer)
    classifier = build_model(one_layer, "classifier", 2)
    save_model(classifier, place / "classifier", ["a", "b"], tokenizer)
    (place / "graph.tsv").write_text("film\tRelatedTo\tplot\nplot\tHasProperty\tfine\n")
    rows = ["prompt\tchoice0\tchoice1\tlabel", *("\t".join(map(str, row)) for row in CHOICES)]
    (place / "choices.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (place / "vectors.txt").write_text("film 1 0\nfine 0 1\n")
    (place / "other.txt").write_text("song 1 0\n")
    return place


def flags(place, chooser="chooser"):
    return [
        f"--chooser_dir={place / chooser}",
        *(f"--{name}={place}/choices.tsv" for name in ("train", "dev", "test")),
        f"--output_dir={place}/out",
    ]


def test_a_model_its_figures_and_a_picture(place, run, refused):
    pytest.importorskip("matplotlib")
    graph = f"--graph={place}/graph.tsv"
    files = [f"--entity_vectors={place}/vectors.txt", f"--picture={place}/out/paths.png"]
    run("train_kagnet", *flags(place), graph, *files, *FEW)
    figures = json.loads((place / "out/figures.json").read_text())
    assert figures["train_pairs"] == figures["dev_linked_pairs"] == 1
    assert figures["test_texts_without_path"] == 0.75
    assert figures["dev_accuracy"] in (0, 0.5, 1)
    assert (place / "out/paths.png").stat().st_size > 1000
    model = keras.models.load_model(place / "out/kagnet.keras")
    assert model.get_layer("concept_embedding").embeddings.shape == (4, 2)
    error = refused("train_kagnet", *flags(place), graph, f"--entity_vectors={place}/other.txt")
    assert "None of the 1 vectors, such as song" in error


def test_what_does_not_fit_is_told(place):
    graph, other = f"--graph={place}/graph.tsv", place / "other.txt"
    cases = {
        "": "--graph",
        "--graph=no --format=wordnet": "install WordNet 3.0",
        f"--graph={place}/vectors.txt": "line 1: expected head, relation and tail",
        f"{graph} --entity_vectors={other} --concept_dim=5": "--concept_dim=5 has no effect",
        f"{graph} --picture_question=1": "has no effect without --picture",
        f"{graph} --picture=a.png --picture_question=2": "must be below the 2 of --dev",
        graph: "",
    }
    check_refusals("train_kagnet", flags(place), cases)
    cases = {graph: f"--chooser_dir={place}/classifier holds a model with the head 'classifier'"}
    check_refusals("train_kagnet", flags(place, "classifier"), cases)
