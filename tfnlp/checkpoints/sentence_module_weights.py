"""Modules of an embedder, from and to a sentence-transformers folder."""

import keras
import numpy as np

from tfnlp.checkpoints.sentence_modules import (
    ACTIVATIONS,
    LENGTHS,
    MODES,
    MODULES,
    PROMPTS,
    SCORES,
    STATIC,
    is_classifier,
    read_modules,
)
from tfnlp.checkpoints.tensors import WEIGHTS, TensorReader, write_tensors
from tfnlp.configs import family_name
from tfnlp.models import projections, vector_head
from tfnlp.utils.files import write_json


def assign_modules(model, folder, with_classifier):
    """Copy the weights of a local folder's Dense modules into the layers on a model's vector.

    Args:
        model: an embedder, or a classifier of vectors.
        folder: with the same modules.
        with_classifier: whether the model has the classes of the folder.
    """
    layers = projections(model)
    if with_classifier:
        layers.append(model.get_layer("classifier"))
    modules = [
        module
        for module in read_modules(folder)
        if module.kind == "Dense" and (with_classifier or not is_classifier(module))
    ]
    for layer, module in zip(layers, modules, strict=True):
        reader = TensorReader(module.folder)
        layer.kernel.assign(reader.read("linear.weight").T)
        if layer.use_bias:
            layer.bias.assign(reader.read("linear.bias"))


def write_modules(model, folder, settings):
    """Write a text vector's modules beside the encoder, as sentence-transformers reads them.

    Args:
        model: an embedder, or a classifier of vectors.
        folder: of the encoder.
        settings: as of `read_embedding_settings`.
    """
    head = vector_head(model)
    if is_static := family_name(model.text_config) == "static":
        modules, settings_of = {"": STATIC}, {}
    else:
        modules = {"": "Transformer", "1_Pooling": "Pooling"}
        settings_of = {"1_Pooling": _pooling_settings(model, head)}

    def add_dense(layer, **settings):
        place = f"{len(modules)}_Dense"
        modules[place], settings_of[place] = "Dense", _dense_settings(layer) | settings
        (folder / place).mkdir(exist_ok=True)
        write_tensors(folder / place / WEIGHTS, _dense_tensors(layer))

    for layer in projections(model):
        add_dense(layer)
    if head.normalize:
        place = f"{len(modules)}_Normalize"
        modules[place], settings_of[place] = "Normalize", {}
    if model.head != "embedder":
        add_dense(model.get_layer("classifier"), module_output_name=SCORES)
    for place, values in settings_of.items():
        (folder / place).mkdir(exist_ok=True)
        write_json(folder / place / "config.json", values)
    if not is_static:  # which reads texts of any length
        lengths = {"max_seq_length": settings.get("max_length"), "do_lower_case": False}
        write_json(folder / LENGTHS, lengths)
    prompts = {
        "prompts": settings.get("prompts", {}),
        "default_prompt_name": settings.get("default_prompt"),
        "similarity_fn_name": "cosine",
    }
    write_json(folder / PROMPTS, prompts)
    entries = [
        {"idx": i, "name": str(i), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for i, (place, kind) in enumerate(modules.items())
    ]
    write_json(folder / MODULES, entries)  # last, so that a folder with it has all of them


def _pooling_settings(model, head):
    theirs = {ours: name for name, (ours, _) in MODES.items()}
    modes = [theirs[mode] for mode in head.pooling]
    pooling = {flag: mode in modes for mode, (_, flag) in MODES.items()}
    if modes != sorted(modes, key=[*MODES].index):  # an order that versions before 6 lack
        pooling = {"pooling_mode": modes}
    width = model.output["sequence_output"].shape[-1]
    return {"word_embedding_dimension": width, **pooling, "include_prompt": True}


def _dense_settings(layer):
    names = {ours: name for name, ours in ACTIVATIONS.items()}
    return {
        "in_features": layer.kernel.shape[0],
        "out_features": layer.units,
        "bias": layer.use_bias,
        "activation_function": names[keras.activations.serialize(layer.activation)],
    }


def _dense_tensors(layer):
    tensors = {"linear.weight": np.ascontiguousarray(np.asarray(layer.kernel).T)}
    return tensors | ({"linear.bias": np.asarray(layer.bias)} if layer.use_bias else {})
