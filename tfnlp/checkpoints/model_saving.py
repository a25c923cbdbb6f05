"""Saving of models as Hugging Face folders."""

import collections
import pathlib

import numpy as np

from tfnlp.checkpoints.checkpoint_config import unnamed_labels
from tfnlp.checkpoints.checkpoint_map import (
    MULTI_LABEL,
    encoder_head,
    map_of,
    read_fields,
    stored_head,
    write_fields,
)
from tfnlp.checkpoints.lora_adapter import ADAPTER, write_adapter
from tfnlp.checkpoints.sentence_module_weights import write_modules
from tfnlp.checkpoints.tensors import WEIGHTS, write_tensors
from tfnlp.checkpoints.weight_assignment import as_stored
from tfnlp.configs import CLASS_HEADS
from tfnlp.layers import GradientDisentangledEmbedding
from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.models import config_of, vector_head
from tfnlp.quantization.fake_quantization import get_ranges
from tfnlp.text.tokenizers.special_tokens import end_token_id
from tfnlp.text.tokenizers.tokenizer_files import check_tokenizer_family
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_json


def save_model(model, folder, labels=None, tokenizer=None, task_settings=None, pooler=None):
    """Write a model as a Hugging Face folder that `transformers` loads.

    One that is fake-quantised computes in float there; `load_model` gives it its ranges back.
    LoRA adapters are merged into the kernels, and stand alone in the folder `adapter`, as `peft`
    reads them.

    Args:
        model: from `tfnlp.models.build_model` or `load_model`.
        folder: created if need be; config.json and model.safetensors in it are replaced,
            each only once it is written whole.
        labels: class names in order of their ids; LABEL_0, LABEL_1, ... where None.
        tokenizer: written beside the model, in place of one that is there; None for none.
        task_settings: a dict of how the head reads texts, for `read_task_settings`; None for
            none.
        pooler: the result of `read_pooler`, for a model without one; None for none.

    Raises:
        InputError: if a file cannot be written, `transformers` has no such model or no field
            for something in its config, or the model cannot read the tokenizer.
    """
    folder = pathlib.Path(folder)
    fields = check_saves(model)
    config = config_of(model)
    family = map_of(config)
    head = encoder_head(model)
    tensors = (pooler or {}) | _tensors(model, family) | family.constants(config, head)
    fields["architectures"] = [family.architecture(head)]
    if model.head in CLASS_HEADS:
        fields |= _label_fields(model, labels)
    if model.head == "multi_label_classifier":
        fields["problem_type"] = MULTI_LABEL
    if task_settings and model.head != "embedder":
        fields["task_specific_params"] = {model.head: dict(task_settings)}
    if ranges := get_ranges(model):
        fields["activation_ranges"] = ranges
    if tokenizer is not None:
        check_tokenizer_family(folder, family.model_type, getattr(tokenizer, "family", None))
        if model.head == "causal_lm" and (end := end_token_id(tokenizer)) is not None:
            # By which `transformers` knows where a text ends; else it takes GPT-2's own id.
            fields |= {"bos_token_id": end, "eos_token_id": end}
    write_tensors(folder / WEIGHTS, tensors)
    write_adapter(model, folder / ADAPTER, tensors)
    write_json(folder / "config.json", fields)
    if family.generation is not None and stored_head(head) is not None:
        write_json(folder / "generation_config.json", family.generation(config))
    if tokenizer is not None:
        tokenizer.save(folder)
    if vector_head(model):
        write_modules(model, folder, task_settings or {})


def check_saves(model):
    """Check that `save_model` supports the model's head and config.

    Returns:
        The fields of its config.json, a dict.

    Raises:
        InputError: if `transformers` has no such head, or config.json would be read back as
            another config.
    """
    config = config_of(model)
    family = map_of(config)
    if family.architecture(encoder_head(model)) is None:
        raise InputError(
            f"`transformers` has no {family.model_type} with the head {model.head!r}, so it "
            "cannot be saved as its folder; save the model as a .keras file."
        )
    fields = write_fields(family, config)
    written, _ = read_fields(family, fields, "config.json")
    written = family.adapt(written, [weight.name for weight in family.weights(model).values()])
    differences = [
        f"{name}={value!r} (read back as {getattr(written, name)!r})"
        for name, value in vars(config).items()
        # None is what the family means without the field.
        if value is not None and getattr(written, name) != value
    ]
    if differences:
        raise InputError(
            f"config.json of a {family.model_type} has no field for {', '.join(differences)}; "
            "save the model as a .keras file, or build it with the value that is read back."
        )
    return fields


def _label_fields(model, labels):
    """Return the fields of config.json with the class names of a classifier or a tagger."""
    classes = model.output["logits"].shape[-1]
    labels = labels or unnamed_labels(classes)
    if len(labels) != classes:
        raise ValueError(f"labels has {len(labels)} names, but the model {classes} classes.")
    return {
        "id2label": {str(i): str(label) for i, label in enumerate(labels)},
        "label2id": {str(label): i for i, label in enumerate(labels)},
    }


def _tensors(model, family):
    """Return the tensors of a model by their Hugging Face names."""
    variables = merged_weights(model)
    for layer in model.layers:
        if isinstance(layer, GradientDisentangledEmbedding):  # whole tables, not differences
            variables |= {f"{layer.path}/{name}": table for name, table in layer.sums().items()}
    config, parts = model.text_config, collections.defaultdict(list)
    weights = family.weights(model).values()
    for weight in sorted(weights, key=lambda weight: weight.part or (0, 1)):
        value = as_stored(np.asarray(variables[weight.path]), weight, config)
        prefix = family.prefix_of(weight, encoder_head(model))
        written_twice = weight.untied_name and not config.tie_embeddings
        for name in (weight.name, *([weight.untied_name] if written_twice else ())):
            parts[prefix + name, weight.part_axis].append(value)
    return {
        name: np.ascontiguousarray(np.concatenate(values, axis) if values[1:] else values[0])
        for (name, axis), values in parts.items()
    }
