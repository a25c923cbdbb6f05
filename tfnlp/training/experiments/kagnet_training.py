"""Training of a KagNet beside a chooser's vectors of texts, and the paths that it looks at.

Lin et al. 2019, and their code, in which the fine-tuned encoder is frozen.
"""

import dataclasses
import itertools

import keras
import numpy as np

from tfnlp.checkpoints import load_model, read_task_settings
from tfnlp.knowledge.schema_graphs import SchemaGraphs
from tfnlp.models import build_kagnet
from tfnlp.tasks.kinds import CHOOSER
from tfnlp.tasks.multiple_choice import Choices
from tfnlp.text import load_tokenizer
from tfnlp.training.run.inference import predict
from tfnlp.utils.progress import progress_bar


@dataclasses.dataclass(frozen=True)
class EndingPaths:
    """An ending as a KagNet sees it.

    Attributes:
        ending: the text.
        probability: of all endings of the prompt.
        paths: a list of (weight, concepts, relations), the largest weight first; a weight is the
            product of the path's within its pair of concepts and of the pair's.
    """

    ending: str
    probability: float
    paths: list


class ChoiceReader:
    """Reader of prompts with endings as the inputs of a KagNet.

    Args:
        chooser_dir: folder of a fine-tuned chooser.
        schema_graphs: `SchemaGraphs`.
    """

    def __init__(self, chooser_dir, schema_graphs: SchemaGraphs):
        self.chooser = load_model(chooser_dir, CHOOSER.head)
        self.tokenizer = load_tokenizer(chooser_dir)
        self.max_length = read_task_settings(chooser_dir).get("max_length")
        self.schema_graphs = schema_graphs

    def find_graphs(self, choices):
        """Return the `SchemaGraph` of each prompt with each of its endings, in one list."""
        pairs = [*zip(*_texts(choices), strict=True)]
        find = self.schema_graphs.schema_graph
        return [find(*pair) for pair in progress_bar(pairs, desc="schema graphs", unit="text")]

    def text_vectors(self, choices):
        """Return the chooser's vectors of prompts with each ending, (prompts, choices, D)."""
        outputs = predict(
            self.chooser,
            self.tokenizer,
            *_texts(choices),
            max_length=self.max_length,
            outputs=("pooled_output",),
        )
        return np.reshape(outputs["pooled_output"], (*_shape(choices), -1))

    def graph_arrays(self, choices, graphs):
        """Return the arrays of the `SchemaGraph`s of choices, (prompts, choices, ...)."""
        arrays, shape = self.schema_graphs.arrays(graphs), _shape(choices)
        return {name: np.reshape(x, (*shape, *x.shape[1:])) for name, x in arrays.items()}

    def inputs(self, choices, graphs):
        """Return all inputs of a KagNet by name."""
        return {"text": self.text_vectors(choices)} | self.graph_arrays(choices, graphs)


def _shape(choices):
    return len(choices), len(choices.endings[0])


def _texts(choices):
    """Return the prompt and the ending of each choice, two lists."""
    pairs = [
        (prompt, ending)
        for prompt, endings in zip(choices.prompts, choices.endings, strict=True)
        for ending in endings
    ]
    return [prompt for prompt, _ in pairs], [ending for _, ending in pairs]


def train_kagnet(config, inputs, labels, concept_vectors, num_relations):
    """Train a KagNet; return the model of the epoch that is best on dev, and a dict of figures.

    Args:
        config: a `KagNetConfig`.
        inputs: {"train": arrays from `ChoiceReader.inputs`, "dev": ...}, and any further splits.
        labels: {"train": the numbers of the right endings, ...}.
        concept_vectors: (entities, C), of the graph's entities.
        num_relations: the number of the graph's relations.
    """
    keras.utils.set_random_seed(config.seed)
    text_dim = inputs["train"]["text"].shape[-1]
    # A reversed edge has a relation of its own.
    model = build_kagnet(config, concept_vectors, 2 * num_relations, text_dim)
    trained = keras.Model(model.input, model.output["logits"])
    figures = {"best_epoch": _fit(config, trained, inputs, labels)}
    figures["trained_parameters"] = sum(np.size(w) for w in trained.trainable_weights)
    for name in sorted(inputs.keys() - {"train"}):
        scores = trained.evaluate(
            inputs[name], np.array(labels[name]), verbose=0, return_dict=True
        )
        figures[f"{name}_accuracy"] = scores["accuracy"]
    return model, figures


def _fit(config, model, inputs, labels):
    """Fit a model from inputs to logits; return the number of the epoch that it keeps."""
    model.compile(
        keras.optimizers.AdamW(config.learning_rate, weight_decay=config.weight_decay),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    best = keras.callbacks.EarlyStopping(
        "val_accuracy", patience=config.epochs, mode="max", restore_best_weights=True
    )
    model.fit(
        inputs["train"],
        np.array(labels["train"]),
        batch_size=config.batch_size,
        epochs=config.epochs,
        validation_data=(inputs["dev"], np.array(labels["dev"])),
        callbacks=[best],
        verbose=2,
    )
    return 1 + best.best_epoch


def path_figures(graphs):
    """Return how many pairs of concepts have a path, and the share of texts without one."""
    return {
        "pairs": sum(graph.compared for graph in graphs),
        "linked_pairs": sum(graph.linked for graph in graphs),
        "texts_without_path": float(np.mean([not graph.paths for graph in graphs])),
    }


def look_at_paths(model, reader, prompt, endings):
    """Return the `EndingPaths` of each ending of a prompt.

    Args:
        model: from `build_kagnet`.
        reader: a `ChoiceReader`.
        prompt: a string.
        endings: a list of strings.
    """
    choices = Choices([prompt], [endings])
    graphs = reader.find_graphs(choices)
    outputs = {name: np.asarray(x) for name, x in model(reader.inputs(choices, graphs)).items()}
    probabilities = np.asarray(keras.ops.softmax(outputs["logits"][0]))
    weights = outputs["path_weights"] * outputs["pair_weights"][:, :, None]  # (endings, Q, M)
    return [
        EndingPaths(ending, float(probability), _weighted_paths(reader.schema_graphs, graph, rows))
        for ending, probability, graph, rows in zip(
            endings, probabilities, graphs, weights, strict=True
        )
    ]


def _weighted_paths(schema_graphs, graph, weights):
    """Return (weight, concepts, relations) of each path of a graph; weights are (Q, M)."""
    names = schema_graphs.graph.entities
    rows = []
    for paths, of_pair in zip(graph.paths.values(), weights, strict=False):
        for path, weight in zip(paths, of_pair, strict=False):
            relations = [schema_graphs.relation_name(*edge) for edge in itertools.pairwise(path)]
            rows.append((float(weight), [names[entity] for entity in path], relations))
    return sorted(rows, key=lambda row: -row[0])
