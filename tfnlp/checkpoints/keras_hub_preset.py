"""Preset folders of keras-hub, read without keras-hub.

`backbone.save_to_preset` writes config.json, which names a class, and model.weights.h5, where each
variable stands under its layer's place; a classifier's own weights are in task.weights.h5. A
preset is loaded as the family of `transformers` that has the model, by `keras_hub_names`.
"""

import collections.abc
import dataclasses
import pathlib

from tfnlp.checkpoints import (
    albert_map,
    bert_map,
    deberta_map,
    distilbert_map,
    electra_map,
    gpt_map,
    keras_hub_names,
    xlnet_map,
)
from tfnlp.checkpoints.family import Family, because, read_fields
from tfnlp.text.keras_hub_tokenizer import read_pad_token_id
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json

PRESET_INDEX = "model.weights.json"
FIELDS = {
    "vocabulary_size": "vocabulary_size",
    "num_layers": "num_layers",
    "num_heads": "num_heads",
    "hidden_dim": "hidden_dim",
    "intermediate_dim": "intermediate_dim",
    "dropout": "dropout",
    "max_sequence_length": "max_length",
    "num_segments": "num_segments",
}
HARMLESS = because("Keras writes it for any model", "name", "trainable", "dtype") | because(
    "how fresh weights are drawn, which the stored ones replace",
    *("kernel_initializer_range", "bias_initializer"),
)


@dataclasses.dataclass(frozen=True)
class Preset:
    """keras-hub's format of a family.

    Args:
        family: its `Family`, with keras-hub's names and fields.
        unused: function from a config to the name of a layer that is not part of the model here.
        computed: function from a config and a function that reads a tensor by name to {name:
            (shape, function that returns it)} for tensors that are not stored.
    """

    family: Family
    unused: collections.abc.Callable = lambda config: None
    computed: collections.abc.Callable = lambda config, read_tensor: {}


def read_preset(folder):
    """Return the `Preset` of a folder, its model config, and the names of unknown fields.

    Raises:
        InputError: if config.json has a class or a type of weights that tfnlp lacks.
    """
    path = pathlib.Path(folder) / "config.json"
    fields = read_json(path)
    registered = fields.get("registered_name") or fields["class_name"]
    package, _, name = registered.rpartition(">")
    if package not in ("keras_hub", "keras_nlp") or name not in PRESETS:
        raise InputError(
            f"{path}: the class {registered} is none that tfnlp reads of keras-hub; "
            f"those are {', '.join(PRESETS)}."
        )
    fields = fields.get("config") or {}
    policy = fields.get("dtype")
    if isinstance(policy, dict) and policy.get("class_name") != "DTypePolicy":
        raise InputError(
            f"{path}: the weights are quantized ({policy.get('class_name')}); save the preset "
            "as it was before `quantize`."
        )
    preset = PRESETS[name]
    config, unknown = read_fields(preset.family, fields, path)
    # A backbone has no such field; the folder's tokenizer does.
    pad = read_pad_token_id(path.parent)
    return (
        preset,
        config if pad is None else dataclasses.replace(config, pad_token_id=pad),
        unknown,
    )


def read_task(folder):
    """Return the class in a preset's task.json, else that of its backbone."""
    folder = pathlib.Path(folder)
    path = folder / "task.json"
    return read_json(path if path.exists() else folder / "config.json").get("class_name")


def _preset(stem, family, encoder, fields=FIELDS, decode=None, heads=None, **kwargs):
    """Return {keras-hub class: `Preset`} of a family.

    Args:
        stem: prefix of the names of keras-hub's classes.
        family: as `transformers` has it.
        encoder: function from a config to the `Weight`s of the backbone, an iterator.
        fields: as in `Family`.
        decode: function from a dict of our fields to those to change.
        heads: {head: class} beside the classifier.
        kwargs: of the `Preset`.
    """

    def weights(config, head):
        stored = list(encoder(config))
        has_pooler = any(weight.path == "pooler/kernel" for weight in stored)
        if has_pooler and head not in (None, "classifier", "chooser"):
            stored = [weight for weight in stored if not weight.path.startswith("pooler/")]
        if head == "classifier":
            stored += keras_hub_names.classifier(has_pooler)
        yield from stored
        # Other heads start from fresh weights.
        paths = {weight.path for weight in stored}
        yield from (w for w in family.weights(config, head) if w.path not in paths)

    def decoded(ours, _):
        ours = {"attention_dropout": ours.get("dropout", 0.1)} | ours
        return ours | (decode(ours) if decode else {})

    keras_hub_family = dataclasses.replace(
        family,
        prefix="",
        fields=fields,
        weights=weights,
        architectures={None: f"{stem}Backbone", "classifier": f"{stem}TextClassifier"}
        | (heads or {}),
        fixed={"num_inner_repetitions": 1},
        harmless=HARMLESS,
        aliases={},
        defaults={},
        decode=decoded,
        adapt=lambda config, names: config,
    )
    return {f"{stem}Backbone": Preset(keras_hub_family, **kwargs)}


def _tanh_gelu(ours):
    """Return keras-hub's tanh GELU; the released models have the exact one."""
    return {"activation": "gelu_new"}


EMBEDDING = FIELDS | {"embedding_dim": "embedding_dim"}
PRESETS = {
    **_preset("Bert", bert_map.BERT, keras_hub_names.bert, decode=_tanh_gelu),
    **_preset(
        "Roberta",
        bert_map.ROBERTA,
        keras_hub_names.roberta,
        computed=keras_hub_names.roberta_tables,
        unused=lambda config: keras_hub_names.POSITIONS,
    ),
    **_preset("DistilBert", distilbert_map.DISTILBERT, keras_hub_names.distilbert),
    **_preset(
        "Albert",
        albert_map.ALBERT,
        keras_hub_names.albert,
        EMBEDDING | {"num_groups": "num_groups"},
        decode=_tanh_gelu,
    ),
    **_preset(
        "Electra",
        electra_map.ELECTRA,
        keras_hub_names.electra,
        EMBEDDING | {"vocab_size": "vocabulary_size"},
        decode=_tanh_gelu,
        unused=keras_hub_names.electra_pooler,
    ),
    **_preset(
        "DebertaV3",
        deberta_map.DEBERTA_V2,
        keras_hub_names.deberta,
        FIELDS | {"bucket_size": "num_buckets"},
        decode=lambda ours: {"max_distance": ours["max_length"]},
    ),
    **_preset(
        "XLNet", xlnet_map.XLNET, keras_hub_names.xlnet, FIELDS | {"activation": "activation"}
    ),
    **_preset(
        "GPT2",
        gpt_map.GPT2,
        keras_hub_names.gpt2,
        decode=lambda ours: {"embedding_dropout": ours["dropout"]},
        heads={"causal_lm": "GPT2CausalLM"},
    ),
}
