"""Loading and saving of models in Hugging Face folders; loading from keras-hub presets."""

import collections
import dataclasses
import pathlib

import numpy as np
from absl import logging

from tfnlp.checkpoints import (
    albert_map,
    bert_map,
    deberta_map,
    distilbert_map,
    electra_map,
    gpt_map,
    marian_map,
    recurrent_map,
    transformer_xl_map,
    xlnet_map,
)
from tfnlp.checkpoints.family import read_fields, write_fields
from tfnlp.checkpoints.keras_hub_preset import (
    PRESET_INDEX,
    PRESET_WEIGHTS,
    PresetReader,
    preset_files,
    read_preset,
    read_task,
)
from tfnlp.checkpoints.tensors import (
    INDEX,
    WEIGHTS,
    TensorReader,
    untouched,
    weight_names,
    write_tensors,
)
from tfnlp.layers import GradientDisentangledEmbedding
from tfnlp.layers.core.initializers import no_fresh_weights
from tfnlp.models import MASKED_LMS, build_model, config_of
from tfnlp.quantization.fake_quantization import get_ranges, set_ranges
from tfnlp.text.keras_hub_tokenizer import ASSET_NAMES, ASSETS, is_preset_file
from tfnlp.text.special_tokens import end_token_id
from tfnlp.text.tokenizer_files import check_tokenizer_family
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json, write_json
from tfnlp.utils.hub import fetch_weights, fetch_whole, find_folder, is_hub_name
from tfnlp.utils.progress import progress_bar

FAMILIES = (
    bert_map.BERT,
    bert_map.ROBERTA,
    distilbert_map.DISTILBERT,
    albert_map.ALBERT,
    electra_map.ELECTRA,
    deberta_map.DEBERTA,
    deberta_map.DEBERTA_V2,
    xlnet_map.XLNET,
    transformer_xl_map.TRANSFORMER_XL,
    gpt_map.GPT,
    gpt_map.GPT2,
    recurrent_map.RECURRENT,
    recurrent_map.RECURRENT_TRANSLATOR,
    marian_map.MARIAN,
    marian_map.PEGASUS,
)
# Part of a pretraining head beyond that of a masked LM.
PAIR_HEAD = "pair_classifier"
# Layers that a checkpoint without that head lacks; they start from fresh weights.
HEAD_LAYERS = {
    *("pooler", "classifier", "span", "lm_transform", "lm_norm", "lm_output", "lm_bias"),
    *("discriminator_norm", "discriminator_transform", "discriminator", "lm_softmax"),
    *("decoder_positions", PAIR_HEAD),
}
# Heads that fine-tuning adds to an encoder.
TASK_HEADS = ("classifier", "tagger", "answerer", "chooser")
# Weights of other heads.
OTHER_HEADS = (
    *("cls.", "classifier.", "qa_outputs.", "pooler.", "lm_head.", "lm_loss.", "score."),
    *("pre_classifier.", "vocab_transform.", "vocab_layer_norm.", "vocab_projector."),
    *("predictions.", "sop_classifier.", "generator_predictions.", "generator_lm_head."),
    *("discriminator_predictions.", "sequence_summary.", "logits_proj.", "lm_predictions."),
    *("mask_predictions.", "multiple_choice_head.", "start_logits.", "end_logits."),
    *("answer_class.", "crit.", "task:", "final_logits_bias"),
)
# Buffers of old versions.
BUFFERS = (".position_ids", ".attn.bias", ".attn.masked_bias", "pos_emb.inv_freq")
# Sinusoids, which are computed, and a table that a Marian without ties does not use.
BUFFERS += (".embed_positions.weight", "shared.weight")
# Bytes of weights above which a progress bar is shown.
LARGE = 500_000_000
# Files to fetch from the Hub before the weights, whose names they contain.
FETCHED = ("config.json", INDEX, "task.json", PRESET_INDEX)


# And of a preset of keras-hub, whose tokenizer says what pads.
FETCHED_OF_PRESET = (*FETCHED, "tokenizer.json", *(f"{ASSETS}/{name}" for name in ASSET_NAMES))


def family_of(config):
    """Return the `Family` of a config."""
    return next(
        family
        for family in FAMILIES
        if family.config is type(config)
        and all(getattr(config, name) == value for name, value in family.only.items())
    )


def _find(source):
    """Return the local folder of a checkpoint, with all files except the weights."""
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
    return _read_config(_find(folder))[1]


def read_labels(folder):
    """Return the class names of a checkpoint, in order of their ids, or None.

    Args:
        folder: as in `load_model`.
    """
    id2label = read_json(_find(folder) / "config.json").get("id2label")
    if not id2label:
        return None
    return [id2label[key] for key in sorted(id2label, key=int)]


def read_task_settings(folder):
    """Return the input settings of a checkpoint's head, as `save_model` wrote them.

    Args:
        folder: as in `load_model`.

    Returns:
        A dict, such as {"unit": "character"} of a tagger; empty where there are none.
    """
    stored = read_json(_find(folder) / "config.json").get("task_specific_params")
    settings = stored.get(read_head(folder)) if isinstance(stored, dict) else None
    return settings if isinstance(settings, dict) else {}


def read_head(folder):
    """Return the head of a checkpoint: one of `tfnlp.models.HEADS`, or None.

    Args:
        folder: as in `load_model`.

    Raises:
        InputError: if config.json names a model of `transformers` that tfnlp lacks.
    """
    folder = _find(folder)
    family, _ = _read_config(folder)
    heads = {name: head for head, name in family.architectures.items()}
    stored = _stored_architecture(folder) or family.architectures[None]
    if stored not in heads:
        raise InputError(
            f"{folder / 'config.json'}: the model {stored} is none of {', '.join(heads)}."
        )
    return heads[stored]


def load_model(
    folder,
    head=None,
    num_classes=None,
    hidden_states=False,
    attention_scores=False,
    memory=False,
    dtype=None,
    block_size=None,
    attention_projections=False,
):
    """Build the model of a checkpoint and load its weights.

    Args:
        folder: holds config.json and model.safetensors (or its index and shards), as Hugging
            Face has it; or is a preset of keras-hub; or the name of a model on the Hugging
            Face Hub, "owner/model" or "owner/model@revision", where no such folder is.
        head: None for the encoder alone, or one of `tfnlp.models.HEADS`. Where the folder has
            no such head, it starts from fresh weights.
        num_classes: of a new head; as many as the folder's where None.
        hidden_states: also output every layer's hidden states.
        attention_scores: also output every layer's scores before the softmax.
        memory: also take a memory and give the next, of a Transformer-XL or an XLNet.
        dtype: a Keras dtype policy; the global one where None.
        block_size: tokens that attention looks at together, as in `build_model`.
        attention_projections: also output every layer's queries, keys and values.

    Returns:
        A `TextModel`, see `tfnlp.models.build_model`; one that was saved fake-quantised is so
        again, unless it has a new head. Its tokenizer is
        `tfnlp.text.load_tokenizer(folder)`.

    Raises:
        TypeError: if `folder` is neither a path nor a name.
        InputError: if a file is missing or broken or could not be fetched, or a weight
            missing, left over or of another shape than config.json says.
    """
    folder, family, config, reader = _open(folder)
    config = family.adapt(config, reader.names())
    config = _with_stored_output(config, family, head, reader)
    stored = _stored_classes(folder, family, head, reader)
    has_head = _has_head(folder, family, head)
    if head in ("classifier", "tagger") and not (num_classes or stored):
        labels = read_labels(folder) if has_head else None
        if labels is None:
            raise InputError(
                f"{reader.description} has no {head} head, but is {_kind(folder, family)}; say "
                "num_classes to start a new one."
            )
        num_classes = len(labels)
    num_classes = num_classes or stored
    with no_fresh_weights(untouched):
        model = build_model(
            config,
            head,
            num_classes,
            hidden_states,
            attention_scores,
            memory,
            dtype=dtype,
            block_size=block_size,
            attention_projections=attention_projections,
        )
    if stored and stored != num_classes:
        # Another task's head: start a fresh one, as a new task needs.
        logging.warning(
            "%s has a head of %d classes; a new one of %d starts from random weights.",
            folder,
            stored,
            num_classes,
        )
    has_head = has_head and stored in (None, num_classes)
    fresh = _assign(model, family, reader, has_head)
    if fresh:
        # Fine-tuning starts a new head on an encoder; a head that config.json names is missed.
        named = has_head and _stored_architecture(folder) == family.architectures.get(head)
        if head in TASK_HEADS and not named:
            logging.info("A new %s starts on the encoder of %s.", head, reader.description)
        else:
            names = ", ".join(fresh)
            logging.warning("Not in %s, so random: %s.", reader.description, names)
    ranges = read_json(folder / "config.json").get("activation_ranges")
    if ranges and (has_head or head is None):  # a new head starts in float, its encoder with it
        try:
            if has_head:
                set_ranges(model, ranges)
            else:
                _set_encoder_ranges(model, ranges)
        except ValueError as e:
            raise InputError(f"{folder / 'config.json'}: activation_ranges: {e}") from None
    return model


def _set_encoder_ranges(model, ranges):
    """Set an encoder's ranges from those of a model with a head; a new pooler stays in float."""
    for layer in model.layers:
        own = {name: x for name, x in ranges.items() if name.startswith(f"{layer.path}/")}
        if own or layer.name not in HEAD_LAYERS:
            set_ranges(layer, own)


def _kind(folder, family):
    """Return a description of a checkpoint's kind."""
    heads = {name: head for head, name in family.architectures.items()}
    stored = _stored_architecture(folder) or family.architectures[None]
    what = heads.get(stored, stored) or "encoder"
    return f"{'an' if what[0] in 'ae' else 'a'} {what} of the family {family.model_type!r}"


def _open(source):
    """Return a checkpoint's local folder, its `Family`, its config, and its tensor reader."""
    folder = _find(source)
    # Before the weights, which may be large, are fetched.
    family, config = _read_config(folder)
    preset = is_preset_file(folder / "config.json")
    if is_hub_name(source):
        files_of, whole = (preset_files, PRESET_WEIGHTS) if preset else (weight_names, WEIGHTS)
        if whole not in files_of(folder):
            fetch_whole(source, folder, whole, files_of(folder))
        fetch_weights(source, folder, files_of(folder))
        logging.info("%s is at commit %s.", source, folder.name)
    if preset:
        return folder, family, config, PresetReader(folder, read_preset(folder)[0], config)
    return folder, family, config, TensorReader(folder)


def _read_config(folder):
    """Return the `Family` and the config of a folder."""
    path = folder / "config.json"
    if is_preset_file(path):
        preset, config, unknown = read_preset(folder)
        family = preset.family
    else:
        fields = read_json(path)
        kinds = {family.model_type: family for family in FAMILIES}
        if fields.get("model_type") not in kinds:
            raise InputError(
                f"{path}: model_type={fields.get('model_type')!r} is not a supported family; use "
                f"one of {', '.join(kinds)}."
            )
        family = kinds[fields["model_type"]]
        config, unknown = read_fields(family, fields, path)
    if unknown:
        logging.warning("%s: not known, so without effect: %s.", path, ", ".join(unknown))
    return family, config


def _stored_architecture(folder):
    """Return the class name in a folder's files, or None."""
    path = folder / "config.json"
    if is_preset_file(path):
        return read_task(folder)
    stored = read_json(path).get("architectures")
    return stored[0] if stored else None


def read_pooler(folder):
    """Return the pooler of a checkpoint's encoder, to save it with a model without one.

    Args:
        folder: as in `load_model`.

    Returns:
        A dict of tensors by their names, as `save_model` takes it; empty where there is none.
    """
    _, family, config, reader = _open(folder)
    prefix, names, found = _stored_prefix(family, reader), set(reader.names()), {}
    for weight in family.weights(config, None):
        stored = _stored_name(weight, prefix, names)
        if stored and weight.path.startswith("pooler/"):
            found[family.prefix + weight.name] = reader.read(stored)
    return found


def save_model(model, folder, labels=None, tokenizer=None, task_settings=None, pooler=None):
    """Write a model as a Hugging Face folder that `transformers` loads.

    One that is fake-quantised computes in float there; `load_model` gives it its ranges back.

    Args:
        model: from `tfnlp.models.build_model` or `load_model`.
        folder: created if need be; config.json and model.safetensors in it are replaced,
            each only once it is written whole.
        labels: class names in order of their ids; LABEL_0, LABEL_1, ... where None.
        tokenizer: also written where given, in place of one that is there.
        task_settings: a dict of how the head reads texts, for `read_task_settings`; None for
            nothing to say.
        pooler: the result of `read_pooler`, for a model without one; None for none.

    Raises:
        InputError: if a file cannot be written, `transformers` has no such model or no field
            for something in its config, or the tokenizer is another family's.
    """
    folder = pathlib.Path(folder)
    config = config_of(model)
    family = family_of(config)
    check_saves(model)
    fields = write_fields(family, config)
    tensors = (pooler or {}) | _tensors(model, family) | family.constants(config, model.head)
    _check_read_back(family, config, fields, tensors)
    fields["architectures"] = [family.architectures[model.head]]
    if model.head in ("classifier", "tagger"):
        classes = model.output["logits"].shape[-1]
        labels = labels or [f"LABEL_{i}" for i in range(classes)]
        if len(labels) != classes:
            raise ValueError(f"labels has {len(labels)} names, but the model {classes} classes.")
        fields["id2label"] = {str(i): str(label) for i, label in enumerate(labels)}
        fields["label2id"] = {str(label): i for i, label in enumerate(labels)}
    if task_settings:
        fields["task_specific_params"] = {model.head: dict(task_settings)}
    if ranges := get_ranges(model):
        fields["activation_ranges"] = ranges
    if tokenizer is not None:
        check_tokenizer_family(folder, family.model_type, getattr(tokenizer, "family", None))
        if model.head == "causal_lm" and (end := end_token_id(tokenizer)) is not None:
            # By which `transformers` knows where a text ends; else it takes GPT-2's own id.
            fields |= {"bos_token_id": end, "eos_token_id": end}
    write_tensors(folder / WEIGHTS, tensors)
    write_json(folder / "config.json", fields)
    if family.generation is not None and model.head is not None:
        write_json(folder / "generation_config.json", family.generation(config))
    if tokenizer is not None:
        tokenizer.save(folder)


def check_saves(model):
    """Check that `save_model` supports the model's head and config.

    Raises:
        InputError: if it does not.
    """
    config = config_of(model)
    family = family_of(config)
    if model.head not in family.architectures:
        raise InputError(
            f"`transformers` has no {family.model_type} with the head {model.head!r}, so it "
            "cannot be saved as its folder; save the model as a .keras file."
        )
    write_fields(family, config)


def _check_read_back(family, config, fields, tensors):
    """Check that the written folder would be read as the same config.

    Raises:
        InputError: if it would not.
    """
    read, _ = read_fields(family, fields, "config.json")
    read = family.adapt(read, list(tensors))
    differing = [
        f"{name}={value!r} (read back as {getattr(read, name)!r})"
        for name, value in vars(config).items()
        # None is what the family means without the field.
        if value is not None and getattr(read, name) != value
    ]
    if differing:
        raise InputError(
            f"config.json of a {family.model_type} cannot say {', '.join(differing)}; save the "
            "model as a .keras file, or build it with what it says."
        )


def _tensors(model, family):
    """Return the tensors of a model by their Hugging Face names."""
    variables = {v.path: v for v in model.weights}
    for layer in model.layers:
        if isinstance(layer, GradientDisentangledEmbedding):  # whole tables, not what makes them
            variables |= {f"{layer.path}/{name}": table for name, table in layer.sums().items()}
    parts = collections.defaultdict(list)
    for weight in family.weights(model.text_config, model.head):
        value = np.asarray(variables[weight.path])
        value = value.T if weight.transpose else value
        value = value.reshape(weight.shape) if weight.shape else value
        prefix = family.prefix if model.head and not weight.head else ""
        for name in (weight.name, *(weight.other_names if weight.all_names else ())):
            parts[prefix + name, _part_axis(weight)].append(value)
    return {
        name: np.ascontiguousarray(np.concatenate(values, axis) if values[1:] else values[0])
        for (name, axis), values in parts.items()
    }


def _part_axis(weight):
    """Return the axis of their tensor along which our variables are parts."""
    return 0 if weight.transpose else -1


def _has_head(folder, family, head):
    """Return whether the folder's head is of this kind, or unknown."""
    same = MASKED_LMS if head in MASKED_LMS else (head,)
    others = {name for kind, name in family.architectures.items() if kind not in (None, *same)}
    return _stored_architecture(folder) not in others


def _with_stored_output(config, family, head, reader):
    """Return the config, untied if the file has an output that differs from the token table.

    `transformers` 5 does the same, whatever config.json says.
    """
    one_table = not (config.enhanced_mask_decoder or config.adaptive_softmax)
    predicts = head == config.language_model or (
        head == "pretraining" and config.pretrained_on_pairs
    )
    if not (config.tie_embeddings and predicts and one_table):
        return config
    prefix, names = _stored_prefix(family, reader), reader.names()
    untied = dataclasses.replace(config, tie_embeddings=False)
    weights = {weight.path: weight for weight in family.weights(untied, head)}
    table = _stored_name(weights["embeddings/token_table"], prefix, names)
    output = _stored_name(weights["lm_output/kernel"], "", names)
    if not (table and output) or np.array_equal(reader.read(table), reader.read(output)):
        return config
    logging.warning(
        "%s: %s is not %s, so that the output is taken as a table of its own; "
        "tie_word_embeddings=false in config.json would say so.",
        reader.description,
        output,
        table,
    )
    return untied


def _stored_classes(folder, family, head, reader):
    """Return the number of classes of the folder's head, or None if it has no such head."""
    if head not in ("classifier", "tagger") or not _has_head(folder, family, head):
        return None
    weights = family.weights(family.config(), head)
    last = next(w for w in weights if w.path == "classifier/kernel")
    if last.name not in reader.names():
        return None
    return reader.shape(last.name)[0 if last.transpose else -1]


def _assign(model, family, reader, with_head):
    """Copy every tensor into its variable, after all names and shapes are checked.

    Returns:
        The names of the weights that the checkpoint lacks, which start at random.
    """
    names = set(reader.names())
    prefix = _stored_prefix(family, reader)
    variables = {v.path: v for v in model.weights}
    plan, fresh, used = [], [], set()
    for weight in family.weights(model.text_config, model.head):
        in_head = weight.path.partition("/")[0] in HEAD_LAYERS
        stored = None
        if with_head or not weight.head:
            stored = _stored_name(weight, "" if weight.head else prefix, names)
        if stored is None:
            if not in_head:
                raise InputError(f"{reader.description} lacks the tensor {prefix}{weight.name}.")
            fresh.append(weight)
            continue
        due = _stored_shape(weight, variables[weight.path].shape)
        if reader.shape(stored) != due:
            raise InputError(
                f"{reader.description}: tensor {stored} has shape {reader.shape(stored)}, "
                f"but config.json asks for {due}."
            )
        plan.append((variables[weight.path], stored, weight))
        used.add(stored)
    others = {
        prefix + name
        for head in family.architectures
        for weight in family.weights(model.text_config, head)
        for name in (weight.name, *weight.other_names)
        if not weight.head
    }
    half = [w.name for w in fresh if w.head and not w.path.startswith(PAIR_HEAD)]
    if half and any(weight.head for _, _, weight in plan):
        raise InputError(
            f"{reader.description} has a {model.head} head without the tensor {half[0]}; copy "
            "the file again, or start a new head from an encoder alone."
        )
    others |= {prefix + name for name in family.unread(model.text_config)}
    surplus = [n for n in names - used - others if not _may_be_left_over(n, prefix)]
    if surplus:
        raise InputError(
            f"{reader.description} has {len(surplus)} tensors that a {family.model_type} of its "
            f"config.json has no place for, such as {min(surplus)}."
        )
    if reader.size() > LARGE:
        plan = progress_bar(plan, desc="Loading weights", unit="tensor")
    for variable, stored, weight in plan:
        variable.assign(_ours(reader.read(stored), weight, variable.shape))
    for weight in fresh:
        layer = model.get_layer(weight.path.partition("/")[0])
        variable = variables[weight.path]
        # Biases and norms have their zeros and ones already.
        if weight.path.endswith("kernel") or "/projection_" in weight.path:
            variable.assign(layer.kernel_initializer(variable.shape))
        elif weight.path.endswith("_table"):
            variable.assign(layer.embeddings_initializer(variable.shape))
    return [weight.name for weight in fresh]


def _ours(value, weight, shape):
    """Return their tensor in the form of our variable."""
    if weight.part:
        index, count = weight.part
        value = np.split(value, count, _part_axis(weight))[index]
    if weight.transpose:
        # A matrix, or one with its rows (XLNet's heads) or its columns (a convolution's) cut up.
        return value.reshape(value.shape[0], -1).T if len(shape) == 2 else value.T
    return value.reshape(shape)


def _stored_shape(weight, shape):
    if weight.shape:
        return tuple(weight.shape)
    shape = list(shape)[:: -1 if weight.transpose else 1]
    if weight.part:
        shape[_part_axis(weight)] *= weight.part[1]
    return tuple(shape)


def _may_be_left_over(name, prefix):
    rest = name.removeprefix(prefix)
    return rest.startswith(OTHER_HEADS) or name.startswith(OTHER_HEADS) or name.endswith(BUFFERS)


def _stored_prefix(family, reader):
    """Return a checkpoint's prefix of encoder names."""
    return family.prefix if any(n.startswith(family.prefix) for n in reader.names()) else ""


def _stored_name(weight, prefix, names):
    """Return the name of a weight in a checkpoint, with or without prefix, old or new; or None."""
    own = (*weight.other_names, weight.name)
    for candidate in (start + name for name in own for start in (prefix, "")):
        old = candidate.replace("LayerNorm.weight", "LayerNorm.gamma")
        old = old.replace("LayerNorm.bias", "LayerNorm.beta")
        for spelling in (candidate, old):
            if spelling in names:
                return spelling
    return None
