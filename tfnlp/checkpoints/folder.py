"""Models from and to Hugging Face checkpoint folders."""

import pathlib

import numpy as np
from absl import logging

from tfnlp.checkpoints import bert_map
from tfnlp.checkpoints.tensors import WEIGHTS, TensorReader, write_tensors
from tfnlp.errors import InputError
from tfnlp.files import read_json, write_json
from tfnlp.models.bert import bert, bert_classifier, config_of

HEADS = (None, "classifier")


def read_config(folder):
    """The model config of a checkpoint folder.

    Raises:
        InputError: if config.json is missing, broken, or of a family that tfnlp lacks.
    """
    path = pathlib.Path(folder) / "config.json"
    fields = read_json(path)
    family = fields.get("model_type")
    if family != "bert":
        raise InputError(f"{path}: model_type={family!r} is not a supported family; 'bert' is.")
    return bert_map.config_from_hugging_face(fields, path)


def read_labels(folder):
    """The class names of a checkpoint folder, in order of their ids, or None."""
    id2label = read_json(pathlib.Path(folder) / "config.json").get("id2label")
    if not id2label:
        return None
    return [id2label[key] for key in sorted(id2label, key=int)]


def load_model(
    folder, head=None, num_classes=None, hidden_states=False, attention_scores=False, dtype=None
):
    """Builds the model of a Hugging Face folder and loads its weights.

    Args:
        folder: holds config.json and model.safetensors (or its index and shards).
        head: None for the encoder alone, "classifier" for a classification head.
        num_classes: of a new classification head; as many as the folder's where None.
        hidden_states: also output every layer's hidden states.
        attention_scores: also output every layer's scores before the softmax.
        dtype: a Keras dtype policy; the global one where None.

    Returns:
        A `keras.Model`, see `tfnlp.models.bert`. Its tokenizer is
        `tfnlp.text.WordPieceTokenizer.from_folder(folder)`.

    Raises:
        InputError: if a file is missing or broken, or a weight missing, left over or of
            another shape than config.json says.
    """
    if head not in HEADS:
        raise ValueError(f"head={head!r} is unknown; use one of {HEADS}.")
    config = read_config(folder)
    reader = TensorReader(folder)
    extras = {
        "hidden_states": hidden_states,
        "attention_scores": attention_scores,
        "dtype": dtype,
    }
    if head == "classifier":
        stored = "classifier.weight" in reader.names()
        num_classes = num_classes or _stored_classes(folder, reader, stored)
        model = bert_classifier(config, num_classes, **extras)
        if stored and reader.shape("classifier.weight")[0] != num_classes:
            # Another task's head: start a fresh one, as a new task needs.
            logging.warning(
                "%s has a head of %d classes; a new one of %d starts from random weights.",
                folder,
                reader.shape("classifier.weight")[0],
                num_classes,
            )
            _assign(model, config, reader, classifier=False)
        else:
            _assign(model, config, reader, classifier=True)
    else:
        model = bert(config, **extras)
        _assign(model, config, reader, classifier=False)
    return model


def save_model(model, folder, labels=None, tokenizer=None):
    """Writes a model as a Hugging Face folder that `transformers` loads.

    Args:
        model: from `tfnlp.models` or `load_model`.
        folder: created if need be; config.json and model.safetensors in it are replaced,
            each only once it is written whole.
        labels: class names in order of their ids; LABEL_0, LABEL_1, ... where None.
        tokenizer: also written where given.

    Raises:
        InputError: if a file cannot be written.
    """
    folder = pathlib.Path(folder)
    config = config_of(model)
    classifier = "logits" in model.output
    variables = {v.path: v for v in model.weights}
    tensors = {}
    for path, name, transpose in bert_map.weight_map(config, classifier):
        value = np.asarray(variables[path])
        if not name.startswith("classifier."):
            name = bert_map.PREFIX * classifier + name
        tensors[name] = np.ascontiguousarray(value.T if transpose else value)
    fields = bert_map.config_to_hugging_face(config)
    fields["architectures"] = ["BertForSequenceClassification" if classifier else "BertModel"]
    if classifier:
        classes = model.output["logits"].shape[-1]
        labels = labels or [f"LABEL_{i}" for i in range(classes)]
        if len(labels) != classes:
            raise ValueError(f"labels has {len(labels)} names, but the model {classes} classes.")
        fields["id2label"] = {str(i): str(label) for i, label in enumerate(labels)}
        fields["label2id"] = {str(label): i for i, label in enumerate(labels)}
    write_tensors(folder / WEIGHTS, tensors)
    write_json(folder / "config.json", fields)
    if tokenizer is not None:
        tokenizer.save(folder)


def _stored_classes(folder, reader, stored):
    if stored:
        return reader.shape("classifier.weight")[0]
    labels = read_labels(folder)
    if labels is None:
        raise InputError(
            f"{reader.description} has no classification head; say num_classes to start a new one."
        )
    return len(labels)


def _assign(model, config, reader, classifier):
    """Copies every tensor into its variable, once all names and shapes are known to fit."""
    names = set(reader.names())
    prefix = bert_map.PREFIX if any(n.startswith(bert_map.PREFIX) for n in names) else ""
    variables = {v.path: v for v in model.weights}
    plan, fresh = [], []
    for path, name, transpose in bert_map.weight_map(config, classifier):
        stored = _stored_name(name, prefix, names)
        if stored is None:
            if not bert_map.may_be_missing(name):
                raise InputError(f"{reader.description} lacks the tensor {prefix}{name}.")
            fresh.append(name)
            continue
        due = tuple(variables[path].shape)[:: -1 if transpose else 1]
        if reader.shape(stored) != due:
            raise InputError(
                f"{reader.description}: tensor {stored} has shape {reader.shape(stored)}, "
                f"but config.json asks for {due}."
            )
        plan.append((variables[path], stored, transpose))
        names.discard(stored)
    surplus = [n for n in names if not bert_map.may_be_left_over(n.removeprefix(prefix))]
    if surplus:
        raise InputError(
            f"{reader.description} has {len(surplus)} tensors that a BERT of its config.json "
            f"has no place for, such as {min(surplus)}."
        )
    for variable, stored, transpose in plan:
        value = reader.read(stored)
        variable.assign(value.T if transpose else value)
    if fresh:
        logging.info("Not in %s, so random: %s.", reader.description, ", ".join(fresh))


def _stored_name(name, prefix, names):
    """The name under which a checkpoint has a weight: with or without prefix, old or new."""
    for candidate in (prefix + name, name):
        old = candidate.replace("LayerNorm.weight", "LayerNorm.gamma")
        old = old.replace("LayerNorm.bias", "LayerNorm.beta")
        for spelling in (candidate, old):
            if spelling in names:
                return spelling
    return None
