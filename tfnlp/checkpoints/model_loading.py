"""Loading of models from Hugging Face folders and keras-hub presets."""

import dataclasses

import numpy as np
from absl import logging

from tfnlp import checkpoints
from tfnlp.checkpoints.checkpoint_config import (
    find_checkpoint,
    may_have_head,
    read_architecture,
    read_family,
    read_head,
    read_labels,
)
from tfnlp.checkpoints.checkpoint_map import MULTI_LABEL, map_of
from tfnlp.checkpoints.foreign_static import read_foreign_tensors
from tfnlp.checkpoints.sentence_module_weights import assign_modules
from tfnlp.checkpoints.sentence_modules import read_classes, read_vector_head
from tfnlp.checkpoints.tensors import WEIGHTS, TensorReader, untouched, weight_names
from tfnlp.checkpoints.weight_assignment import (
    HEAD_LAYERS,
    assign_weights,
    stored_names,
)
from tfnlp.configs import CLASS_HEADS, FINE_TUNED_HEADS, TEXT_CLASS_HEADS
from tfnlp.layers.core.initializers import no_fresh_weights
from tfnlp.models import build_model
from tfnlp.quantization.fake_quantization import set_ranges
from tfnlp.text.tokenizers.keras_hub_tokenizer import is_preset_file
from tfnlp.text.tokenizers.tokenizer_files import foreign_static
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json
from tfnlp.utils.hub import fetch_weights, fetch_whole, find_folder, is_hub_name, is_remote


def load_model(folder, head=None, num_classes=None, **options):
    """Build the model of a checkpoint and load its weights.

    Args:
        folder: holds config.json and model.safetensors (or its index and shards), as Hugging
            Face has it; or is a preset of keras-hub. Where no such folder is, the name of a model
            on the Hugging Face Hub, "owner/model" or "owner/model@revision", or of a preset,
            "bert_base_en" or "kaggle://keras/bert/keras/bert_base_en".
        head: None for the encoder alone, or one of `tfnlp.models.HEADS`. Where the folder has
            no such head, it starts from fresh weights.
        num_classes: of a new head; as many as the folder's where None. A classifier of one label
            a text starts anew on a folder of several.
        options: `hidden_states`, `attention_scores`, `attention_projections`, `memory`, `packed`,
            `vectors`, `block_size` and `dtype`, as `build_model` takes them; the `vectors` of a
            folder of sentence-transformers are its own if not given.

    Returns:
        A `TextModel`, see `tfnlp.models.build_model`; one that was saved fake-quantised is so
        again, unless it has a new head. Its tokenizer is
        `tfnlp.text.load_tokenizer(folder)`.

    Raises:
        TypeError: if `folder` is neither a path nor a name.
        InputError: if a file is missing or broken or could not be fetched, or a weight
            missing, left over or of another shape than in config.json.
    """
    source = folder
    folder, family, config, reader = _open_checkpoint(source)
    config = family.adapt(config, reader.names())
    config = _untied_as_stored(config, family, head, reader)
    has_head = may_have_head(folder, family, head)
    if head == "classifier" and num_classes and _is_multi_label(folder):
        has_head = False  # its logits are of labels that do not exclude each other
    classes_of_vector = read_classes(folder) if head in TEXT_CLASS_HEADS else None
    stored_classes = None
    if has_head:
        stored_classes = classes_of_vector or _stored_classes(config, family, head, reader)
    if has_head and head in TEXT_CLASS_HEADS:
        _check_labels(folder, head, stored_classes)
    reads_vector = head == "embedder" or classes_of_vector
    reads_vector = reads_vector or (head in TEXT_CLASS_HEADS and options.get("vectors"))
    vectors = read_vector_head(folder) if reads_vector else None
    if vectors is not None and options.setdefault("vectors", vectors) != vectors:
        raise InputError(f"{folder} has other `vectors`, {vectors}; leave them out.")
    num_classes = num_classes or stored_classes
    if head in CLASS_HEADS and not num_classes:
        labels = read_labels(folder) if has_head else None
        if labels is None:
            raise InputError(
                f"{reader.description} has no {head} head; give num_classes to start a new one."
            )
        num_classes = len(labels)
    with no_fresh_weights(untouched):
        model = build_model(config, head, num_classes, **options)
    if stored_classes and stored_classes != num_classes:
        # Another task's head: start a fresh one, as a new task needs.
        logging.warning(
            "%s has a head of %d classes; a new one of %d starts from random weights.",
            folder,
            stored_classes,
            num_classes,
        )
        has_head = False
    fresh = assign_weights(model, family, reader, has_head)
    if vectors is not None:
        assign_modules(model, folder, has_head and bool(classes_of_vector))
    elif fresh:
        # Fine-tuning starts a new head on an encoder; a head that config.json names is missed.
        is_named = has_head and read_architecture(folder) == family.architecture(head)
        if head in FINE_TUNED_HEADS and not is_named:
            logging.info("A new %s starts on the encoder of %s.", head, reader.description)
        else:
            names = ", ".join(fresh)
            logging.warning("Not in %s, so random: %s.", reader.description, names)
    _restore_ranges(model, folder, has_head)
    model.checkpoint = str(source if is_remote(source) else folder.absolute())
    return model


def _check_labels(folder, head, num_classes):
    """Raise an `InputError` if config.json speaks of other classes than the head has."""
    if not (folder / "config.json").exists():
        return
    path, labels = folder / "config.json", read_labels(folder)
    if head == "classifier" and _is_multi_label(folder):
        raise InputError(
            f"{path}: problem_type={MULTI_LABEL!r} has several labels a text; load it with "
            "head='multi_label_classifier', or give num_classes to start a new classifier."
        )
    if labels and num_classes and len(labels) != num_classes:
        raise InputError(
            f"{path}: id2label names {len(labels)} classes, and the head has {num_classes}; "
            "give a name for each."
        )


def _is_multi_label(folder):
    path = folder / "config.json"
    return path.exists() and read_head(folder) == "multi_label_classifier"


def read_pooler(folder):
    """Return the pooler of a checkpoint's encoder, to save it with a model without one.

    Args:
        folder: as in `load_model`.

    Returns:
        A dict of tensors by their names, as `save_model` takes it; empty where there is none.
    """
    _, family, config, reader = _open_checkpoint(folder)
    stored, saved = stored_names(family, reader), map_of(config)
    rows = {row.path: row for row in saved.encoder}
    poolers = [weight for weight in family.encoder if weight.layer == "pooler"]
    return {
        saved.prefix + rows[weight.path].name: _as_saved(reader.read(name), weight, rows)
        for weight in poolers
        if (name := weight.find(stored))
    }


def _as_saved(value, weight, rows):
    """Return a stored tensor as the folder of `save_model` has it; a preset has its transpose."""
    same = rows[weight.path].transpose == weight.transpose
    return value if same else np.ascontiguousarray(value.T)


def _open_checkpoint(source):
    """Return a checkpoint's local folder, its `CheckpointMap`, its config, and its reader."""
    folder = find_checkpoint(source)
    # Before the weights, which may be large, are fetched.
    family, config = read_family(folder)
    if foreign_static(folder):
        return folder, family, config, read_foreign_tensors(folder)
    if is_preset_file(folder / "config.json"):
        find_folder(source, ["*.weights.h5"])  # whole or in shards
        return folder, family, config, checkpoints.keras_hub_conversion.open_preset(folder)
    if is_hub_name(source):
        if WEIGHTS not in weight_names(folder):
            fetch_whole(source, folder, WEIGHTS, weight_names(folder))
        fetch_weights(source, folder, weight_names(folder))
        logging.info("%s is at commit %s.", source, folder.name)
    return folder, family, config, TensorReader(folder)


def _untied_as_stored(config, family, head, reader):
    """Return the config, untied if the file has an output that differs from the token table.

    `transformers` 5 does the same, even against config.json.
    """
    rows, stored = family.rows(config, head), stored_names(family, reader)
    if not config.tie_embeddings or config.enhanced_mask_decoder or "lm_output/kernel" not in rows:
        return config
    table = rows["embeddings/token_table"].find(stored)
    output = rows["lm_output/kernel"].find(stored)
    if not (table and output) or np.array_equal(reader.read(table), reader.read(output)):
        return config
    logging.warning(
        "%s: %s is not %s, so the output is read as a table of its own; set "
        "tie_word_embeddings=false in config.json.",
        reader.description,
        output,
        table,
    )
    return dataclasses.replace(config, tie_embeddings=False)


def _stored_classes(config, family, head, reader):
    """Return the number of classes of a stored classifier or tagger; None without one."""
    if head not in CLASS_HEADS:
        return None
    last = family.rows(config, head).get("classifier/kernel")
    if last is None or last.name not in reader.names():
        return None
    return reader.shape(last.name)[0 if last.transpose else -1]


def _restore_ranges(model, folder, has_head):
    """Fake-quantise a model by the ranges in config.json; one with a new head stays in float."""
    path = folder / "config.json"
    ranges = path.exists() and read_json(path).get("activation_ranges")
    if not ranges or not (has_head or model.head is None):
        return
    try:
        if has_head:
            set_ranges(model, ranges)
            return
        # The encoder of a model with a head; a new pooler stays in float.
        for layer in model.layers:
            of_layer = {name: x for name, x in ranges.items() if name.startswith(f"{layer.path}/")}
            if of_layer or layer.name not in HEAD_LAYERS:
                set_ranges(layer, of_layer)
    except ValueError as e:
        raise InputError(f"{path}: activation_ranges: {e}") from None
