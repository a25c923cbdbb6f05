"""Family, config, head, labels and task settings of a checkpoint, by its config.json."""

from absl import logging

from tfnlp import checkpoints
from tfnlp.checkpoints import sentence_modules
from tfnlp.checkpoints.checkpoint_map import MAPS, MULTI_LABEL, read_fields, stored_head
from tfnlp.checkpoints.foreign_static import read_foreign_config
from tfnlp.checkpoints.tensors import INDEX, OTHER_FORMATS, no_weights
from tfnlp.configs import MASKED_LMS
from tfnlp.text.tokenizers.keras_hub_tokenizer import ASSETS, is_preset_file
from tfnlp.text.tokenizers.tokenizer_files import foreign_static
from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.files import read_json
from tfnlp.utils.hub import find_folder, is_hub_name

# Files to fetch from the Hub before the weights, whose names they contain.
FETCHED = ("config.json", INDEX, "task.json", "model.weights.json", *sentence_modules.FETCHED)
# Files to fetch of a keras-hub preset, whose tokenizer has the padding token.
FETCHED_OF_PRESET = (*FETCHED, "tokenizer.json", f"{ASSETS}/*")


def find_checkpoint(source):
    """Return the local folder of a checkpoint, with all files except the weights.

    Args:
        source: as `folder` in `load_model`.
    """
    folder = find_folder(source, FETCHED)
    if is_hub_name(source) and is_preset_file(folder / "config.json"):
        folder = find_folder(source, FETCHED_OF_PRESET)
    return folder


def read_config(folder):
    """Return the model config of a checkpoint.

    Args:
        folder: as in `load_model`.

    Raises:
        InputError: if config.json is missing, broken, or of a family that tfnlp lacks.
    """
    return read_family(find_checkpoint(folder))[1]


def read_labels(folder):
    """Return the class names of a checkpoint, in order of their ids, or None.

    Args:
        folder: as in `load_model`.
    """
    path = find_checkpoint(folder) / "config.json"
    id2label = _read_fields(path).get("id2label")
    if not id2label:
        return None
    numbers = [str(i) for i in range(len(id2label))]
    if not isinstance(id2label, dict) or {*id2label} != {*numbers}:
        raise InputError(
            f'{path}: id2label must name each class by its number, as {{"0": "name"}}, from 0 on.'
        )
    labels = [str(id2label[number]) for number in numbers]
    if len({*labels}) < len(labels):
        raise InputError(f"{path}: id2label has a name twice; give each class one of its own.")
    return labels


def unnamed_labels(count):
    """Return the names that `transformers` gives to classes without: LABEL_0, LABEL_1, ..."""
    return [f"LABEL_{i}" for i in range(count)]


def read_task_settings(folder):
    """Return the input settings of a checkpoint's head, as `save_model` wrote them.

    Args:
        folder: as in `load_model`.

    Returns:
        A dict, such as {"unit": "character"} of a tagger; empty where there are none.
    """
    folder, head = find_checkpoint(folder), read_head(folder)
    if head == "embedder":
        return sentence_modules.read_embedding_settings(folder)
    by_head = read_json(folder / "config.json").get("task_specific_params")
    settings = by_head.get(head) if isinstance(by_head, dict) else None
    return settings if isinstance(settings, dict) else {}


def read_head(folder):
    """Return the head of a checkpoint: one of `tfnlp.models.HEADS`, or None.

    Args:
        folder: as in `load_model`.

    Raises:
        InputError: if config.json names a model of `transformers` that tfnlp lacks.
    """
    folder = find_checkpoint(folder)
    family, _ = read_family(folder)
    heads = {name: head for head, name in family.architectures.items()}
    architecture = read_architecture(folder) or family.architectures[None]
    if architecture not in heads:
        raise InputError(
            f"{folder / 'config.json'}: the model {architecture} is none of {', '.join(heads)}."
        )
    head = heads[architecture]
    if head is None and sentence_modules.makes_vectors(folder):
        head = "classifier" if sentence_modules.read_classes(folder) else "embedder"
    is_multi_label = _read_fields(folder / "config.json").get("problem_type") == MULTI_LABEL
    return "multi_label_classifier" if head == "classifier" and is_multi_label else head


def read_family(folder):
    """Return the `CheckpointMap` and the config of a local folder."""
    path = folder / "config.json"
    if foreign_static(folder):
        return MAPS["static"], read_foreign_config(folder)
    if not path.exists() and any(any(folder.glob(pattern)) for pattern in OTHER_FORMATS):
        raise no_weights(folder)
    if is_preset_file(path):
        family, config, unknown = checkpoints.keras_hub_map.read_preset(folder)
    else:
        fields = read_json(path)
        model_type = fields.get("model_type")
        if model_type not in MAPS:
            raise unknown_name(f"{path}: model_type", model_type, MAPS)
        family = MAPS[model_type]
        config, unknown = read_fields(family, fields, path)
    if unknown:
        logging.warning("%s: not known, so without effect: %s.", path, ", ".join(unknown))
    return family, config


def read_architecture(folder):
    """Return the class of `transformers` or keras-hub that a local folder names, or None."""
    path = folder / "config.json"
    if is_preset_file(path):
        return checkpoints.keras_hub_map.read_task(folder)
    if foreign_static(path.parent):  # whose names are other classes
        return None
    architectures = read_json(path).get("architectures")
    return architectures[0] if architectures else None


def _read_fields(path):
    """Return the fields of a config.json; none for static vectors of others, which may lack it."""
    return {} if foreign_static(path.parent) else read_json(path)


def may_have_head(folder, family, head):
    """Return whether a local folder's head is `head`, or unknown."""
    same = MASKED_LMS if head in MASKED_LMS else (stored_head(head),)
    others = {name for kind, name in family.architectures.items() if kind not in (None, *same)}
    return read_architecture(folder) not in others
