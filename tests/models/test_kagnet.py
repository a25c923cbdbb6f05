"""KagNet against its sums in PyTorch, saved, and as a TFLite file."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
from ai_edge_litert.interpreter import Interpreter

from distill.export.conversion import to_tflite
from tests.layers.witnesses import rand, weight
from tfnlp.knowledge import KnowledgeGraph, SchemaGraphs
from tfnlp.models import KagNetConfig, build_kagnet

TRIPLES = [
    ("bird", "can", "fly"),
    ("wing", "part_of", "bird"),
    ("plane", "has", "wing"),
    ("plane", "can", "fly"),
    ("fly", "is", "move"),
]
LIMITS = {"max_edges": 3, "max_pairs": 3, "max_paths": 2}
CONFIG = KagNetConfig(**LIMITS, relation_dim=3, graph_dim=4, path_dim=5, pair_dim=6, dropout=0.0)
TEXTS = [
    ("A bird and its wing", "can fly"),
    ("nothing", "at all"),
    ("A plane", "moves"),
    ("The wing", "of the bird"),
]


@pytest.fixture(scope="module")
def kagnet():
    """A model with random weights, its inputs, and the schema graphs that they are of."""
    graph = KnowledgeGraph.from_names(TRIPLES)
    finder = SchemaGraphs(graph, CONFIG.max_edges, CONFIG.max_pairs, CONFIG.max_paths)
    graphs = [finder.schema_graph(*pair) for pair in TEXTS]
    inputs = {name: x.reshape(2, 2, *x.shape[1:]) for name, x in finder.arrays(graphs).items()}
    vectors = rand(len(graph.entities), 3)
    model = build_kagnet(CONFIG, vectors, 2 * len(graph.relations), 7)
    for i, variable in enumerate(model.trainable_variables):
        variable.assign(0.5 * rand(*variable.shape, seed=i))
    return model, {"text": rand(2, 2, 7, seed=1)} | inputs, finder, graphs, vectors


def score_of(weights, finder, vectors, graph, text):
    """Return the score of one text, node by node and path by path (Lin et al. 2019)."""

    def dense(x, layer, bias=True):
        y = x @ weights[f"{layer}/kernel"]
        return y + weights[f"{layer}/bias"] if bias else y

    h = {entity: torch.tensor(vectors[entity], dtype=torch.float64) for entity in graph.entities}
    first = dict(h)
    for i in range(2):
        name, before = f"graph_convolution_{i}", dict(h)
        for entity in h:
            x = dense(before[entity], f"{name}/node_dense")
            near = [before[other] for other in before if other in finder.relations[entity]]
            if near:
                x = x + dense(sum(near) / len(near), f"{name}/neighbour_dense", bias=False)
            h[entity] = torch.relu(x)
    h = {entity: torch.cat([first[entity], h[entity]]) for entity in h}

    lstm = torch.nn.LSTM(2 * 7 + 3, CONFIG.path_dim, dtype=torch.float64)
    cell = {
        "weight_ih_l0": weights["path_lstm/lstm_cell/kernel"].T,
        "weight_hh_l0": weights["path_lstm/lstm_cell/recurrent_kernel"].T,
        "bias_ih_l0": weights["path_lstm/lstm_cell/bias"],
        "bias_hh_l0": torch.zeros_like(weights["path_lstm/lstm_cell/bias"]),
    }

    relations = weights["relation_embedding/embeddings"]

    def read(path):
        triples = [
            torch.cat([h[head], relations[1 + finder.relation(head, tail)], h[tail]])
            for head, tail in itertools.pairwise(path)
        ]
        _, (state, _) = torch.func.functional_call(lstm, cell, torch.stack(triples)[:, None])
        return state[0, 0]

    rows, scores = [], []
    for (source, target), paths in graph.paths.items():
        pair = torch.cat([text, h[source], h[target]])
        for i in range(2):
            pair = torch.nn.functional.leaky_relu(dense(pair, f"pair_{i}"), 0.2)
        states = torch.stack([read(path) for path in paths])
        query = dense(pair, "path_attention/path_query", bias=False)
        rows.append(torch.cat([torch.softmax(states @ query, 0) @ states, pair]))
        scores.append(dense(text, "path_attention/pair_query", bias=False) @ pair)
    g = torch.zeros(CONFIG.path_dim + CONFIG.pair_dim, dtype=torch.float64)
    if rows:
        g = torch.softmax(torch.stack(scores), 0) @ torch.stack(rows)
    return dense(torch.cat([g, text]), "scores")[0]


def test_scores_are_those_of_the_paper_and_padding_changes_nothing(kagnet):
    model, inputs, finder, graphs, vectors = kagnet
    assert [len(graph.paths) for graph in graphs] == [2, 0, 1, 1]
    weights = {v.path: torch.tensor(weight(v)) for v in model.trainable_variables}
    texts = torch.tensor(inputs["text"].reshape(4, -1), dtype=torch.float64)
    pairs = zip(graphs, texts, strict=True)
    expected = torch.stack([score_of(weights, finder, vectors, *pair) for pair in pairs])
    pads = {"concepts": [(0, 0), (0, 0), (0, 3)], "adjacency": [(0, 0), (0, 0), (0, 3), (0, 3)]}
    wider = {name: np.pad(inputs[name], pad) for name, pad in pads.items()}
    for batch in (inputs, inputs | wider):
        np.testing.assert_allclose(np.ravel(model(batch)["logits"]), expected, atol=1e-5)


def test_saves_and_converts_to_builtins(kagnet, tmp_path):
    model, inputs, *_ = kagnet
    model.save(tmp_path / "kagnet.keras")
    loaded = keras.models.load_model(tmp_path / "kagnet.keras")
    expected = model(inputs)
    np.testing.assert_array_equal(loaded(inputs)["logits"], expected["logits"])
    specs = [
        tf.TensorSpec((1, *x.shape[1:]), "int32" if name != "text" else "float32", name)
        for name, x in inputs.items()
    ]

    def run(*tensors):
        return {"logits": model(dict(zip(inputs, tensors, strict=True)))["logits"]}

    content = to_tflite(model, {"serving_default": (run, specs)}, "float32")
    signature = Interpreter(model_content=content).get_signature_runner()
    for i in range(2):
        found = signature(**{name: x[i : i + 1] for name, x in inputs.items()})["logits"][0]
        np.testing.assert_allclose(found, expected["logits"][i], atol=1e-5)
