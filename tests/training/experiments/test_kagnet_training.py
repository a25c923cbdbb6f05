"""KagNet learns from paths what the texts do not tell, and shows the paths it looks at."""

import numpy as np
import pytest

from tfnlp.checkpoints import save_model
from tfnlp.knowledge import KnowledgeGraph, SchemaGraphs, concept_vectors
from tfnlp.models import KagNetConfig, build_model
from tfnlp.tasks.multiple_choice import Choices
from tfnlp.training import ChoiceReader, look_at_paths, path_figures, predict, train_kagnet

BIRDS, FISH = ("robin", "wren", "owl", "crow"), ("trout", "carp", "cod", "eel")
TRIPLES = [(name, "is_a", "bird") for name in BIRDS] + [(name, "is_a", "fish") for name in FISH]
TRIPLES += [("bird", "can", "fly"), ("fish", "can", "swim")]
SIZES = {"concept_dim": 8, "relation_dim": 4, "graph_dim": 8, "path_dim": 8, "pair_dim": 8}
MOST = {"max_edges": 2, "max_pairs": 2, "max_paths": 1}
CONFIG = KagNetConfig(**SIZES, **MOST, dropout=0.0, epochs=8, batch_size=3, learning_rate=0.03)


def choices(names):
    labels = [int(name in FISH) for name in names]
    return Choices([f"the {name}" for name in names], [["fly", "swim"]] * len(names), labels)


@pytest.fixture(scope="module")
def reader(one_layer, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("chooser")
    save_model(build_model(one_layer, "chooser"), folder, tokenizer=tokenizer)
    graph = KnowledgeGraph.from_names(TRIPLES)
    return ChoiceReader(folder, SchemaGraphs(graph, 2, 2, 1))


def test_paths_decide_where_texts_do_not(reader):
    graph = reader.schema_graphs.graph
    splits = {"train": choices([*BIRDS[:3], *FISH[:3]] * 2), "dev": choices([BIRDS[3], FISH[3]])}
    splits["test"] = splits["dev"]
    graphs = {name: reader.find_graphs(split) for name, split in splits.items()}
    due = {"pairs": 4, "linked_pairs": 2, "texts_without_path": 0.5}
    assert path_figures(graphs["dev"]) == due
    inputs = {name: reader.inputs(splits[name], graphs[name]) for name in splits}
    # Every name is unknown to the chooser, whose vectors are the same for all.
    assert inputs["train"]["text"].shape == (12, 2, 32)
    np.testing.assert_allclose(inputs["train"]["text"][0], inputs["train"]["text"][1], atol=1e-5)
    table = concept_vectors(graph, dim=CONFIG.concept_dim)
    labels = {name: split.labels for name, split in splits.items()}
    model, figures = train_kagnet(CONFIG, inputs, labels, table, len(graph.relations))
    assert figures["dev_accuracy"] == figures["test_accuracy"] == 1
    assert 1 <= figures["best_epoch"] <= 8
    np.testing.assert_array_equal(model.get_layer("concept_embedding").embeddings[1:], table)

    seen = look_at_paths(model, reader, "the crow", ["fly", "swim", "a film"])
    assert [ending.ending for ending in seen] == ["fly", "swim", "a film"]
    assert sum(ending.probability for ending in seen) == pytest.approx(1)
    assert seen[0].probability == max(ending.probability for ending in seen)
    (path,) = seen[0].paths
    assert path == (pytest.approx(1), ["crow", "bird", "fly"], ["is_a", "can"])
    assert seen[1].paths == seen[2].paths == []


def test_vectors_of_texts_are_those_that_the_chooser_scores(reader):
    texts = choices(["film", "plot"])
    vectors = reader.text_vectors(texts)
    scores = np.asarray(reader.chooser.get_layer("classifier")(vectors))[..., 0]
    prompts, endings = ["the film"] * 2 + ["the plot"] * 2, ["fly", "swim"] * 2
    logits = predict(reader.chooser, reader.tokenizer, prompts, endings)["logits"]
    np.testing.assert_allclose(np.ravel(scores), np.ravel(logits), atol=1e-5)
