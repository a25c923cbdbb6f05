"""Preset folders of keras-hub, read without keras-hub.

`backbone.save_to_preset` writes config.json, which names a class, and model.weights.h5, where each
variable stands under its layer's place; a classifier's own weights are in task.weights.h5. What
has a family of `transformers` here has a table of names below, and is loaded as that family.
"""

import collections.abc
import dataclasses
import pathlib

import h5py
import numpy as np

from tfnlp.checkpoints import (
    albert_map,
    bert_map,
    deberta_map,
    distilbert_map,
    electra_map,
    gpt_map,
    xlnet_map,
)
from tfnlp.checkpoints.family import Family, Weight, because, read_fields
from tfnlp.text.keras_hub_tokenizer import read_pad_token_id
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json

PRESET_WEIGHTS = "model.weights.h5"
PRESET_INDEX = "model.weights.json"
TASK_WEIGHTS = "task.weights.h5"
# What stands before the names of a task's own weights here.
TASK = "task:"
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
HARMLESS = because("what Keras says of any model", "name", "trainable", "dtype") | because(
    "how fresh weights are drawn, which the stored ones replace",
    *("kernel_initializer_range", "bias_initializer"),
)


@dataclasses.dataclass(frozen=True)
class Preset:
    """keras-hub's format of a family.

    Args:
        family: its `Family`, with keras-hub's names and fields.
        unused: function from a config to the name of a layer that is not part of the model here.
        made: function from a config and a reader of tensors by name to {name: (shape, function
            that returns it)} for tensors that are not stored.
    """

    family: Family
    unused: collections.abc.Callable = lambda config: None
    made: collections.abc.Callable = lambda config, read: {}


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
    # No field of a backbone, but what the folder's tokenizer does.
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


class PresetReader:
    """Reader of a preset's tensors by name, with the interface of `TensorReader`.

    Args:
        folder: holds model.weights.h5, or model.weights.json and its shards.
        preset, config: the results of `read_preset` for the folder.

    Raises:
        InputError: if a file is missing, cut short or no HDF5.
    """

    def __init__(self, folder, preset, config):
        folder = pathlib.Path(folder)
        self.description = str(folder / PRESET_WEIGHTS)
        self._paths = {"": [folder / name for name in preset_weight_names(folder)]}
        if read_task(folder) == preset.family.architectures["classifier"]:
            self._paths[TASK] = [folder / TASK_WEIGHTS]
        self._tensors = {}
        for start, paths in self._paths.items():
            for path in paths:
                self._add_all(start, path)
        self._made = preset.made(config, self.read)
        unused = f"layers/{preset.unused(config)}/"
        self._names = [*(n for n in self._tensors if not n.startswith(unused)), *self._made]

    def _add_all(self, start, path):
        def add(name, entry):
            # An optimizer's variables may stand beside those of layers.
            if isinstance(entry, h5py.Dataset) and name.startswith("layers/"):
                self._tensors[start + name] = path, name, tuple(entry.shape)

        with _open(path) as file:
            file.visititems(add)

    def size(self):
        """Return the size of all files together in bytes."""
        return sum(path.stat().st_size for paths in self._paths.values() for path in paths)

    def names(self):
        """Return the names of all tensors."""
        return self._names

    def shape(self, name):
        """Return a tensor's shape."""
        return self._made[name][0] if name in self._made else self._tensors[name][2]

    def read(self, name):
        """Return a tensor as a NumPy array; bfloat16, which NumPy lacks, as float32."""
        if name in self._made:
            return self._made[name][1]()
        path, place, _ = self._tensors[name]
        with _open(path) as file:
            try:
                value, kind = file[place][()], file[place].attrs.get("dtype")
            except OSError as e:
                raise InputError(f"{path}: {place} cannot be read ({e}).") from None
        if kind == "bfloat16":
            # A bfloat16 is the upper half of a float32.
            value = (value.view("uint16").astype("uint32") << 16).view("float32")
        return value


def preset_weight_names(folder):
    """Return the names of a preset's weight files: the single file, else those in its index."""
    if (folder / PRESET_WEIGHTS).exists() or not (folder / PRESET_INDEX).exists():
        return [PRESET_WEIGHTS]
    weight_map = read_json(folder / PRESET_INDEX).get("weight_map") or {}
    names = set()
    for files in weight_map.values():
        names.update(files if isinstance(files, list) else [files])
    return sorted(names) or [PRESET_WEIGHTS]


def preset_files(folder):
    """Return the names of all weight files of a preset, including those of its task."""
    task = [TASK_WEIGHTS] if (read_task(folder) or "").endswith("TextClassifier") else []
    return preset_weight_names(folder) + task


def _open(path):
    """Open an HDF5 file for a short time, since an open file cannot be rewritten."""
    try:
        return h5py.File(path, "r")
    except FileNotFoundError:
        raise InputError(
            f"{path.parent} holds no {path.name}; save it with its weights, by `save_to_preset`."
        ) from None
    except OSError as e:
        raise InputError(f"{path} is not a whole HDF5 file ({e}); copy it again.") from None


# The names, of which a layer's variables are 0, 1, ...


def _table(path, layer):
    yield Weight(path, f"layers/{layer}/vars/0")


def _dense(path, layer, **kwargs):
    yield Weight(f"{path}/kernel", f"layers/{layer}/vars/0", **kwargs)
    yield Weight(f"{path}/bias", f"layers/{layer}/vars/1", **kwargs)


def _norm(path, layer):
    yield Weight(f"{path}/gamma", f"layers/{layer}/vars/0")
    yield Weight(f"{path}/beta", f"layers/{layer}/vars/1")


def _numbered(layer, i):
    return f"{layer}_{i}" if i else layer


def _attention(config, path, layer, underscore=""):
    """Yield the projections of attention, which have a separate axis for the heads."""
    heads = config.num_heads, config.hidden_dim // config.num_heads
    for part in ("query", "key", "value"):
        name = f"layers/{layer}/{underscore}{part}_dense/vars"
        yield Weight(f"{path}/{part}/kernel", f"{name}/0", shape=(config.hidden_dim, *heads))
        yield Weight(f"{path}/{part}/bias", f"{name}/1", shape=heads)
    name = f"layers/{layer}/{underscore}output_dense/vars"
    # DeBERTa's attention joins its heads before.
    joined = (config.hidden_dim,) if underscore else heads
    yield Weight(f"{path}/output/kernel", f"{name}/0", shape=(*joined, config.hidden_dim))
    yield Weight(f"{path}/output/bias", f"{name}/1")


def _block(config, path, layer, underscore=""):
    yield from _attention(
        config, f"{path}/attention", f"{layer}/_self_attention_layer", underscore
    )
    yield from _norm(f"{path}/attention_norm", f"{layer}/_self_attention_layer_norm")
    for part in ("intermediate", "output"):
        yield from _dense(f"{path}/feed_forward/{part}", f"{layer}/_feedforward_{part}_dense")
    yield from _norm(f"{path}/feed_forward_norm", f"{layer}/_feedforward_layer_norm")


def _blocks(config, layer="transformer_encoder", underscore=""):
    for i in range(config.num_layers):
        yield from _block(config, f"encoder_{i}", _numbered(layer, i), underscore)


def _three_tables(config):
    """Yield the embeddings of BERT-like models."""
    yield from _table("embeddings/token_table", "reversible_embedding")
    yield from _table("embeddings/position_table", "position_embedding")
    yield from _table("embeddings/segment_table", "embedding")
    yield from _norm("embeddings/norm", "layer_normalization")


def _bert(config):
    yield from _three_tables(config)
    yield from _blocks(config)
    yield from _dense("pooler", "dense")


def _electra(config):
    yield from _three_tables(config)
    if config.embedding_dim != config.hidden_dim:
        yield from _dense("embeddings/projection", "dense")
    yield from _blocks(config)


def _electra_pooler(config):
    """Return the layer name of a pooler that the paper's and `transformers`' models lack."""
    return "dense_1" if config.embedding_dim != config.hidden_dim else "dense"


def _albert(config):
    yield from _three_tables(config)
    yield from _dense("embeddings/projection", "dense")
    for i in range(config.num_groups):
        yield from _block(config, f"encoder/block_{i}", _numbered("transformer_encoder", i))
    yield from _dense("pooler", "dense_1")


def _distilbert(config):
    layer = "token_and_position_embedding"
    yield from _table("embeddings/token_table", f"{layer}/token_embedding")
    yield from _table("embeddings/position_table", f"{layer}/position_embedding")
    yield from _norm("embeddings/norm", "layer_normalization")
    yield from _blocks(config)


POSITIONS = "token_and_position_embedding/position_embedding"


def _roberta(config):
    for weight in _distilbert(config):
        made = weight.path == "embeddings/position_table"
        yield dataclasses.replace(weight, name="positions") if made else weight
    yield Weight("embeddings/segment_table", "segments")


def _make_roberta_tables(config, read):
    """Return the rows before the first position and a segment, which keras-hub lacks."""
    before = np.zeros((config.pad_token_id + 1, config.hidden_dim), "float32")
    segments = np.zeros((1, config.hidden_dim), "float32")
    rows, stored = config.max_length + len(before), f"layers/{POSITIONS}/vars/0"
    return {
        "positions": ((rows, config.hidden_dim), lambda: np.r_[before, read(stored)]),
        "segments": (segments.shape, lambda: segments),
    }


def _deberta(config):
    yield from _table("embeddings/token_table", "reversible_embedding")
    yield from _norm("embeddings/norm", "layer_normalization")
    yield from _table("relative_positions/table", "relative_embedding")
    yield from _norm("relative_positions/norm", "relative_embedding/layer_norm")
    yield from _blocks(config, "disentangled_attention_encoder", "_")


def _xlnet(config):
    cube = (config.hidden_dim, config.num_heads, config.hidden_dim // config.num_heads)
    yield from _table("embeddings/token_table", "content_and_query_embedding/word_embed")
    yield from _table("embeddings/query_vector", "xl_net_attention_mask_layer")
    for i in range(config.num_layers):
        ours, layer = f"encoder_{i}", _numbered("xl_net_encoder", i)
        parts = {"query": "query", "key": "key", "value": "value", "position": "_encoding"}
        for part, name in parts.items():
            name = f"layers/{layer}/relative_attention/{name}_dense/vars/0"
            yield Weight(f"{ours}/attention/{part}/kernel", name, shape=cube)
        name = f"layers/{layer}/relative_attention/output_dense/vars/0"
        yield Weight(f"{ours}/attention/output/kernel", name, transpose=True, shape=cube)
        own = ("content_bias", "position_bias", "segment_bias", "segment_table")
        for k, part in enumerate(own):
            yield Weight(f"{ours}/attention/{part}", f"layers/{layer}/vars/{k}")
        yield from _norm(f"{ours}/attention_norm", f"{layer}/layer_norm")
        for part in ("intermediate", "output"):
            yield from _dense(f"{ours}/feed_forward/{part}", f"{layer}/feedforward_{part}_dense")
        yield from _norm(f"{ours}/feed_forward_norm", f"{layer}/layer_norm_ff")


def _gpt2(config):
    yield from _table("embeddings/token_table", "reversible_embedding")
    yield from _table("embeddings/position_table", "position_embedding")
    yield from _blocks(config, "transformer_decoder")
    yield from _norm("final_norm", "layer_normalization")


def _classifier(has_pooler):
    """Yield a `TextClassifier`'s own weights, with the pooler if the backbone has none."""
    layers = ["classifier"] if has_pooler else ["pooler", "classifier"]
    for i, path in enumerate(layers):
        for weight in _dense(path, _numbered("dense", i), head=True):
            yield dataclasses.replace(weight, name=TASK + weight.name)


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
            stored += _classifier(has_pooler)
        yield from stored
        # Other heads start from fresh weights.
        paths = {weight.path for weight in stored}
        yield from (w for w in family.weights(config, head) if w.path not in paths)

    def decoded(ours, _):
        ours = {"attention_dropout": ours.get("dropout", 0.1)} | ours
        return ours | (decode(ours) if decode else {})

    own = dataclasses.replace(
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
    return {f"{stem}Backbone": Preset(own, **kwargs)}


def _tanh_gelu(ours):
    """Return keras-hub's tanh GELU; the released models have the exact one."""
    return {"activation": "gelu_new"}


EMBEDDING = FIELDS | {"embedding_dim": "embedding_dim"}
PRESETS = {
    **_preset("Bert", bert_map.BERT, _bert, decode=_tanh_gelu),
    **_preset(
        "Roberta",
        bert_map.ROBERTA,
        _roberta,
        made=_make_roberta_tables,
        unused=lambda config: POSITIONS,
    ),
    **_preset("DistilBert", distilbert_map.DISTILBERT, _distilbert),
    **_preset(
        "Albert",
        albert_map.ALBERT,
        _albert,
        EMBEDDING | {"num_groups": "num_groups"},
        decode=_tanh_gelu,
    ),
    **_preset(
        "Electra",
        electra_map.ELECTRA,
        _electra,
        EMBEDDING | {"vocab_size": "vocabulary_size"},
        decode=_tanh_gelu,
        unused=_electra_pooler,
    ),
    **_preset(
        "DebertaV3",
        deberta_map.DEBERTA_V2,
        _deberta,
        FIELDS | {"bucket_size": "num_buckets"},
        decode=lambda ours: {"max_distance": ours["max_length"]},
    ),
    **_preset("XLNet", xlnet_map.XLNET, _xlnet, FIELDS | {"activation": "activation"}),
    **_preset(
        "GPT2",
        gpt_map.GPT2,
        _gpt2,
        decode=lambda ours: {"embedding_dropout": ours["dropout"]},
        heads={"causal_lm": "GPT2CausalLM"},
    ),
}
