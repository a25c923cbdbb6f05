"""LoRA adapters as `peft` stores them: written beside a merged model, and merged into their base.

Hu et al. 2021, 'LoRA: Low-Rank Adaptation of Large Language Models', eq. 3: W + alpha / r * A . B.
"""

import math
import pathlib
import re

import keras
import numpy as np
from absl import logging

from tfnlp.checkpoints.checkpoint_map import map_of
from tfnlp.checkpoints.tensors import ADAPTER_CONFIG, TensorReader, write_tensors
from tfnlp.checkpoints.weight_assignment import (
    OTHER_HEADS,
    as_variable,
    task_layers,
    trains_beside_lora,
)
from tfnlp.layers.core.merged_weights import lora_layers
from tfnlp.models import config_of, projections, vector_head
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import make_folder, read_json, write_json
from tfnlp.utils.hub import NAME

TENSORS = "adapter_model.safetensors"
# The folder of an adapter beside the merged model.
ADAPTER = "adapter"
# What precedes the names of `transformers`.
PREFIX = "base_model.model."
# `peft`'s names of tasks, by our heads.
TASK_TYPES = {
    None: "FEATURE_EXTRACTION",
    "classifier": "SEQ_CLS",
    "multi_label_classifier": "SEQ_CLS",
    "tagger": "TOKEN_CLS",
    "answerer": "QUESTION_ANS",
    "causal_lm": "CAUSAL_LM",
}
# `peft`'s default.
ALPHA = 8
# Values of adapters that are added to their base as it is: other starts, such as PiSSA's, take
# their own part out of it, and aLoRA adds to some tokens alone.
PLAIN = {
    "peft_type": ("LORA",),
    "init_lora_weights": (None, True, False, "gaussian", "eva", "orthogonal", "mica"),
    "alora_invocation_tokens": (None,),
}


def write_adapter(model, folder, tensors):
    """Write the LoRA adapter of a model, with its head, as `peft` reads it.

    Factors of query, key and value that are one kernel in `transformers` become factors of that
    one, of a rank that is the sum of theirs. The scale is a part of B, so that alpha is the rank.
    A warning says why there is no adapter where it could not hold all that trains.

    Args:
        model: from `build_model`; nothing is written for one without adapted blocks.
        folder: created if need be.
        tensors: {name: array} of the merged model's folder.
    """
    family = map_of(config_of(model))
    weights, of_head = family.weights(model), task_layers(model)
    layers = [x for x in lora_layers(model) if x.path.partition("/")[0] not in of_head]
    if not layers:
        return
    if reason := _reason_against(model, layers, weights):
        logging.warning("No adapter is written beside the merged model: %s.", reason)
        return
    factors, rank = _stored_factors(layers, weights, family, model.head)
    head = {}  # {name: module} of the tensors that are stored whole
    for weight in weights.values():
        prefix = family.prefix_of(weight, model.head)
        if weight.layer in of_head:
            names = [prefix + name for name in weight.names if prefix + name in tensors]
            head |= dict.fromkeys(names, prefix + weight.name.partition(".")[0])
    adapter = {PREFIX + name: tensors[name] for name in head}
    for module, (a, b) in factors.items():
        adapter[f"{PREFIX}{module}.lora_A.weight"] = np.ascontiguousarray(a.T)
        adapter[f"{PREFIX}{module}.lora_B.weight"] = np.ascontiguousarray(b.T)
    base, remote = model.checkpoint, NAME.fullmatch(model.checkpoint or "")
    make_folder(folder)
    write_tensors(folder / TENSORS, adapter)
    write_json(
        folder / ADAPTER_CONFIG,
        {
            "peft_type": "LORA",
            "task_type": TASK_TYPES.get(model.head),
            "base_model_name_or_path": remote["name"] if remote else base,
            "revision": remote and remote["revision"],
            "r": rank,
            "lora_alpha": rank,
            "target_modules": sorted(factors),
            "modules_to_save": sorted({*head.values()}) or None,
            "fan_in_fan_out": not all(weights[x._kernel.path].transpose for x in layers),
            "inference_mode": True,
        },
    )


def renew_head(folder):
    """Write the tensors of the head of a folder's model to the adapter beside it, if there is one.

    A head that changes after training, as by calibration, is a part of both.
    """
    if not (folder / ADAPTER / TENSORS).exists():
        return
    adapter, merged = TensorReader(folder / ADAPTER, TENSORS), TensorReader(folder)
    of_model = {PREFIX + name: name for name in merged.names()}
    renewed = {
        name: merged.read(of_model[name]) if name in of_model else adapter.read(name)
        for name in adapter.names()
    }
    write_tensors(folder / ADAPTER / TENSORS, renewed)


def _reason_against(model, layers, weights):
    """Return why an adapter cannot hold what trains, in words; None if it can."""
    if projections(model) or (vector_head(model) and model.head != "embedder"):
        return "it has no place for the dense layers on a text's vector"
    for layer in layers:
        kernel = isinstance(layer, keras.layers.Dense) and weights.get(layer._kernel.path)
        if not kernel or kernel.axes:
            return f"{layer.path} is no linear layer in `transformers`"
    of_head = task_layers(model)
    for variable in model.trainable_weights:
        if not trains_beside_lora(variable, of_head):
            return f"{variable.path} trains too; freeze it, as `tfnlp.training.add_lora` does"
    return None


def _stored_factors(layers, weights, family, head):
    """Return {module of `transformers`: (A (D, r), B (r, units))}, and r, one for all."""
    modules = {}  # {module: [(A, B) of each of our kernels that its kernel holds]}
    for layer in layers:
        weight = weights[layer._kernel.path]
        a, b = np.asarray(layer.lora_kernel_a), np.asarray(layer.lora_kernel_b)
        index, count = weight.part or (0, 1)
        parts = [np.zeros_like(b)] * count
        parts[index] = b * np.float32(layer.lora_alpha / layer.lora_rank)
        name = family.prefix_of(weight, head) + weight.name
        pairs = modules.setdefault(name.removesuffix(".weight"), [])
        pairs.append((a, np.concatenate(parts, 1)))
    rank = max(sum(a.shape[1] for a, _ in pairs) for pairs in modules.values())
    factors = {}
    for module, pairs in modules.items():
        a, b = np.concatenate([a for a, _ in pairs], 1), np.concatenate([b for _, b in pairs], 0)
        spare = (0, rank - a.shape[1])  # zeros, where others have more
        factors[module] = np.pad(a, ((0, 0), spare)), np.pad(b, (spare, (0, 0)))
    return factors, rank


def merge_adapter(model, folder):
    """Add a LoRA adapter to the weights of the model that it was trained on.

    Args:
        model: the base, from `load_model`, with the head of the adapter, whose weights it gets.
        folder: holds adapter_config.json and adapter_model.safetensors, as `peft`, and
            `save_model` for a model with LoRA, write them.

    Raises:
        InputError: if a file is missing or broken, a tensor has no place or another shape, or
            the adapter is not plain LoRA.
    """
    folder = pathlib.Path(folder)
    fields = read_json(folder / ADAPTER_CONFIG)
    for name, plain in PLAIN.items():
        if fields.get(name) not in plain:
            raise InputError(
                f"{folder / ADAPTER_CONFIG}: {name}={fields.get(name)!r} is not read, only plain "
                "LoRA; merge it by peft's merge_and_unload() and save_pretrained(folder)."
            )
    reader = TensorReader(folder, TENSORS)
    config = config_of(model)
    family = map_of(config)
    stored = {
        name.removeprefix(PREFIX).removeprefix(family.prefix): name for name in reader.names()
    }
    variables = {variable.path: variable for variable in model.weights}
    values, used = [], set()
    for path, weight in family.weights(model).items():
        module = weight.name.removesuffix(".weight")
        pair = [stored.get(f"{module}.lora_{factor}.weight") for factor in "AB"]
        is_change = None not in pair
        names = pair if is_change else [weight.find(stored)]
        if None in names:
            continue
        value = _change(fields, weight, reader, *pair) if is_change else reader.read(*names)
        variable = variables[path]
        shape = weight.stored_shape(variable.shape, config)
        if value.shape != shape:
            raise InputError(
                f"{reader.description}: {names[0]} is of a kernel of shape {value.shape}, but the "
                f"model's is {shape}; load the model that the adapter was trained on."
            )
        value = as_variable(value, weight, variable.shape)
        values.append((variable, value + np.asarray(variable) if is_change else value))
        used.update(names)
    left_over = [name for plain, name in stored.items() if not plain.startswith(OTHER_HEADS)]
    if left_over := {*left_over} - used:
        raise InputError(
            f"{reader.description}: {min(left_over)} has no place in this {family.model_type}, or "
            "is not of plain LoRA; load the model that the adapter was trained on, or merge it "
            "by peft's merge_and_unload() and save_pretrained(folder)."
        )
    for variable, value in values:
        variable.assign(value)
    model.checkpoint = None  # what trains from here on is no adapter of that one


def _change(fields, weight, reader, name_of_a, name_of_b):
    """Return alpha / r * A . B as the stored kernel is."""
    a, b = (reader.read(name).astype("float32", copy=False) for name in (name_of_a, name_of_b))
    module = name_of_a.removeprefix(PREFIX).removesuffix(".lora_A.weight")
    alpha = fields.get("lora_alpha", ALPHA)
    for pattern, other in (fields.get("alpha_pattern") or {}).items():
        if re.fullmatch(rf"(.*\.)?({pattern})", module):
            alpha = other
            break
    rank = len(a)
    change = alpha / (math.sqrt(rank) if fields.get("use_rslora") else rank) * (b @ a)  # (out, in)
    return change if weight.transpose else change.T
