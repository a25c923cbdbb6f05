"""TransE, DistMult and RotatE: scores and losses beside plain loops, training, files."""

import cmath

import numpy as np
import pytest

from tfnlp.baselines import WordVectors
from tfnlp.knowledge import (
    METHODS,
    GraphVectors,
    KnowledgeGraph,
    graph_vectors,
    hold_out,
    load_graph_vectors,
    score_links,
)
from tfnlp.utils.errors import InputError

RNG = np.random.default_rng(0)
HEADS, RELATIONS, TAILS = RNG.normal(size=(3, 5, 4)).astype("float32")


def close(scores, expected):
    np.testing.assert_allclose(scores, np.array(expected, "float32"), rtol=1e-5, atol=1e-5)


def test_scores_are_those_of_the_papers():
    rows = list(zip(HEADS, RELATIONS, TAILS, strict=True))
    for norm in (1, 2):
        expected = [-np.linalg.norm(h + r - t, norm) for h, r, t in rows]
        close(graph_vectors.transe_score(HEADS, RELATIONS, TAILS, norm=norm), expected)
    expected = [h @ np.diag(r) @ t for h, r, t in rows]
    close(graph_vectors.distmult_score(HEADS, RELATIONS, TAILS), expected)
    expected = []
    for h, r, t in rows:
        head, tail = ([complex(x[i], x[i + 2]) for i in (0, 1)] for x in (h, t))
        turned = [head[i] * cmath.exp(1j * r[i]) - tail[i] for i in (0, 1)]
        expected.append(-sum(map(abs, turned)))
    close(graph_vectors.rotate_score(HEADS, RELATIONS[:, :2], TAILS), expected)


def test_losses_are_those_of_the_papers():
    positive, negative = np.array([1.0, -2.0], "float32"), np.array([[0.5, 1], [-3, 0]], "float32")
    # [1 - 1 + 0.5]_+, [1 - 1 + 1]_+, [1 + 2 - 3]_+, [1 + 2 + 0]_+
    close(graph_vectors.margin_loss(positive, negative, 1.0), (0.5 + 1 + 0 + 3) / 4)
    expected = 0
    for f, corrupted in zip(positive, negative, strict=True):
        weights = np.exp(0.5 * corrupted) / np.exp(0.5 * corrupted).sum()
        # Minus the logarithms of sigmoid(3 + f) and of sigmoid(-g - 3).
        expected += np.log1p(np.exp(-3 - f)) + weights @ np.log1p(np.exp(corrupted + 3))
    close(graph_vectors.self_adversarial_loss(positive, negative, 3.0, 0.5), expected / 2)


def make(method, num_entities=25, **settings):
    settings = {"dim": 8, "batch_triples": 16, **settings}
    return GraphVectors(num_entities, 4, METHODS[method](**settings))


def test_corruptions_replace_the_head_or_the_tail_by_another_entity():
    triples = np.stack([np.arange(500) % 4, np.zeros(500), np.arange(500) % 3], 1).astype("int32")
    heads, tails = map(np.asarray, make("transe", 4, negatives=9).corrupt(triples))
    new_head, new_tail = heads != triples[:, :1], tails != triples[:, 2:]
    assert heads.shape == (500, 9) and (new_head ^ new_tail).all()
    assert (new_head.all(1) | new_tail.all(1)).all() and 0.4 < new_head.mean() < 0.6
    drawn = np.bincount(heads[new_head[:, 0] & (triples[:, 0] == 1)].ravel(), minlength=4)
    assert drawn[1] == 0 and drawn[[0, 2, 3]].min() > 100


def grid():
    """Return a graph of 5 x 5 places, right of and below each other, with inverses."""
    steps = {"right": (0, 1), "below": (1, 0)}
    edges = [
        (f"e{row}{column}", name, f"e{row + down}{column + right}")
        for name, (down, right) in steps.items()
        for row in range(5 - down)
        for column in range(5 - right)
    ]
    inverses = [(tail, f"not_{name}", head) for head, name, tail in edges]
    return KnowledgeGraph.from_names(edges + inverses)


@pytest.mark.parametrize(
    ("method", "margin"), [("transe", 2.0), ("distmult", 2.0), ("rotate", 6.0)]
)
def test_training_finds_held_out_triples(method, margin, tmp_path):
    graph = grid()
    train, held_out = hold_out(graph, 0.1)
    model = make(method, epochs=150, loss="self_adversarial", margin=margin)
    before = score_links(model, held_out, train)
    model.train(train)
    scores = score_links(model, held_out, train)
    assert scores["mrr"] > 1.5 * before["mrr"] and scores["mean_rank"] < 0.6 * before["mean_rank"]
    lengths = np.linalg.norm(model.entities.embeddings, axis=1)
    if method != "rotate":
        np.testing.assert_allclose(lengths, 1, atol=1e-5)
    model.save_vectors(tmp_path, graph)
    loaded, entities, relations = load_graph_vectors(tmp_path)
    assert (entities, relations) == (graph.entities, graph.relations)
    np.testing.assert_allclose(loaded(train), model(train), atol=1e-5)
    assert loaded.settings == model.settings
    head = WordVectors.load(tmp_path / "entities.bin")["e00"]
    np.testing.assert_array_equal(head, model.entities.embeddings[0])


def test_a_seed_gives_the_same_vectors():
    tables = []
    for seed in (3, 3, 4):
        model = make("transe", epochs=2, seed=seed)
        model.train(grid().triples)
        tables.append(np.asarray(model.entities.embeddings))
    np.testing.assert_array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])


def test_penalty_of_relations_is_in_the_loss_of_distmult():
    with_penalty, without = (make("distmult", relation_penalty=penalty) for penalty in (0.1, 0))
    triples = grid().triples[:5]
    scores = with_penalty(triples)
    penalised, plain = (m.compute_loss(triples, y_pred=scores) for m in (with_penalty, without))
    penalty = 0.1 * np.square(with_penalty.relations.embeddings).sum()
    assert float(penalised - plain) == pytest.approx(penalty, abs=1e-5)


def test_bad_folders_and_losses_are_told(tmp_path):
    with pytest.raises(InputError, match=r"config.json is missing"):
        load_graph_vectors(tmp_path)
    make("transe").save_vectors(tmp_path, grid())
    text = (tmp_path / "config.json").read_text()
    for there, instead, message in (
        ('"dim": 8', '"dim": 9', "vectors of width 8, and config.json says 9"),
        ("transe", "transx", "method=transx is unknown"),
    ):
        (tmp_path / "config.json").write_text(text.replace(there, instead))
        with pytest.raises(InputError, match=message):
            load_graph_vectors(tmp_path)
    with pytest.raises(InputError, match="give a learning_rate below"):
        make("rotate", learning_rate=1e38, epochs=3).train(grid().triples)
