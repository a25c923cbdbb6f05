"""Training by LoRA: small factors of the changes of some kernels, and the head."""

import math

import keras
from absl import logging

from tfnlp.checkpoints.weight_assignment import HEAD_LAYERS, task_layers, trains_beside_lora
from tfnlp.models import TextModel
from tfnlp.utils.errors import InputError

# The name of all kernels of the blocks.
ALL = "all"


def add_lora(model, rank, layers=("query", "value")):
    """Adapt kernels of a model's blocks by LoRA, and freeze all else but the head of a task.

    Hu et al. 2021, 'LoRA: Low-Rank Adaptation of Large Language Models': the kernels stay, and
    the factors A and B of their changes train (`keras.layers.Dense.enable_lora`, whose scale
    alpha / r is 1). `tfnlp.checkpoints.save_model` merges them. Kernels that are frozen already
    get none.

    Args:
        model: of any family with blocks, or a `Trainer` of one; not of a pretraining, which trains
            parts of models.
        rank: r, at least 1.
        layers: the ends of the paths of the layers whose kernels are adapted, such as "query",
            "attention/output" or "intermediate"; ("all",) for all of the blocks.

    Raises:
        InputError: if a name is of no kernel, all kernels are frozen, or blocks are not of a
            model of tfnlp.
    """
    models = [part for part in model._flatten_layers() if isinstance(part, TextModel)]
    candidates = [layer for part in models for layer in _block_layers(part)]
    if len(candidates) < len([*_block_layers(model)]):
        raise InputError(
            f"lora_rank={rank} is for fine-tuning and distillation, not for this pretraining; "
            "leave it out."
        )
    for name in layers or ("",):
        if not any(_is_named(layer, name) for layer in candidates):
            names = sorted({"/".join(layer.path.split("/")[-2:]) for layer in candidates})
            raise InputError(
                f"lora_layers={name} is no kernel of the model's blocks; give {ALL}, or some "
                f"of {', '.join(names) or 'those of a model that has blocks'}."
            )
    adapted = [
        layer
        for layer in candidates
        if layer._kernel.trainable and any(_is_named(layer, name) for name in layers)
    ]
    # Those of a phase before are adapted already.
    if not adapted and not any(layer.lora_enabled for layer in candidates):
        raise InputError(
            f"lora_rank={rank} adapts kernels of lora_layers={','.join(layers)}, but all of them "
            "are frozen, so that the head alone would train; freeze fewer blocks."
        )
    with model.distribute_strategy.scope():
        for layer in adapted:
            layer.enable_lora(rank)
    for part in models:
        of_head = task_layers(part)
        for variable in part.trainable_variables:
            if not trains_beside_lora(variable, of_head):
                variable.trainable = False
    if adapted:
        trained, whole = (
            f"{sum(math.prod(variable.shape) for variable in variables):,}"
            for variables in (model.trainable_variables, model.variables)
        )
        logging.info(
            "LoRA of rank %d on %d kernels: %s of %s parameters train.",
            *(rank, len(adapted), trained, whole),
        )


def _block_layers(model):
    """Yield the dense layers of a model's blocks."""
    for layer in model._flatten_layers():
        top, _, below = (layer.path or "").partition("/")
        is_of_block = below and top not in (*HEAD_LAYERS, "embeddings")
        if is_of_block and isinstance(layer, keras.layers.Dense):
            yield layer


def _is_named(layer, name):
    return name == ALL or f"/{layer.path}".endswith(f"/{name}")
