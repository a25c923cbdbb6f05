"""Modules of a sentence-transformers folder: how states become the vector of a text.

Beside the encoder, such a folder has modules.json, a folder with the settings and weights of each
further module, sentence_bert_config.json and config_sentence_transformers.json. Needs no Keras.
"""

import dataclasses
import pathlib

from tfnlp.configs import Projection, VectorHead
from tfnlp.text.reading.readers import read_json_data
from tfnlp.text.tokenizers.tokenizer_files import foreign_static, read_settings
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json
from tfnlp.utils.hub import find_folder

MODULES = "modules.json"
LENGTHS = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
# Files to fetch from the Hub.
FETCHED = (MODULES, LENGTHS, PROMPTS, "tokenizer.json", "tokenizer_config.json")
FETCHED += ("*_Pooling/config.json", "*_Dense/*", "*_StaticEmbedding/*")
# The encoder of static vectors, which are a mean without a Pooling.
STATIC = "StaticEmbedding"
# Static vectors read texts of any length; model2vec too writes this number of tokens.
ANY_LENGTH = 1_000_000
# Their name of a pooling: ours, and its flag in settings before version 6. The vectors of several
# are joined in this order.
MODES = {
    "cls": ("first", "pooling_mode_cls_token"),
    "max": ("max", "pooling_mode_max_tokens"),
    "mean": ("mean", "pooling_mode_mean_tokens"),
    "mean_sqrt_len_tokens": ("mean_sqrt_length", "pooling_mode_mean_sqrt_len_tokens"),
    "weightedmean": ("weighted_mean", "pooling_mode_weightedmean_tokens"),
    "lasttoken": ("last", "pooling_mode_lasttoken"),
}
# Output of a dense layer that is no vector: of the classes, as a `CrossEncoder` reads it.
SCORES = "scores"
# The class of torch of an activation: Keras' name.
ACTIVATIONS = {
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.SiLU": "silu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
    "torch.nn.modules.linear.Identity": "linear",
}


@dataclasses.dataclass(frozen=True)
class Module:
    """Entry of modules.json: the last word of its class, and its folder."""

    kind: str
    folder: pathlib.Path

    @property
    def path(self):
        """File of its settings."""
        return self.folder / "config.json"

    def settings(self):
        """Return its settings."""
        return read_json(self.path)


def _read_if_there(path):
    return read_json(path) if path.exists() else {}


def has_modules(folder):
    """Return whether a local folder is one of sentence-transformers."""
    return (pathlib.Path(folder) / MODULES).exists()


def makes_vectors(folder):
    """Return whether a local folder has modules, or static vectors of an early model2vec."""
    return has_modules(folder) or foreign_static(folder) is not None


def read_vector_head(folder):
    """Return the `VectorHead` of a folder of sentence-transformers, or its name on the Hub.

    It is None for a folder without modules.

    Raises:
        InputError: for a module, or a setting of one, that makes another vector.
    """
    folder = find_folder(folder, FETCHED)
    if not makes_vectors(folder):
        return None
    encoder, *modules = read_modules(folder)
    modules = [module for module in modules if not is_classifier(module)]
    kinds = [module.kind for module in modules]
    dense, pooling = kinds.count("Dense"), ["Pooling"] * (encoder.kind != STATIC)
    if kinds != pooling + ["Dense"] * dense + ["Normalize"] * (kinds[-1:] == ["Normalize"]):
        raise InputError(
            f"{folder / MODULES} has the modules {', '.join(kinds) or 'none'} after the encoder; "
            "a vector is made by Pooling, then any Dense, then Normalize or not."
        )
    modes = _read_pooling(modules[0]) if pooling else ("mean",)
    layers = [_read_projection(module) for module in modules if module.kind == "Dense"]
    return VectorHead(modes, tuple(layers), kinds[-1:] == ["Normalize"])


def read_classes(folder):
    """Return the number of classes of a local folder whose modules end in a classifier, or None.

    Raises:
        InputError: as `read_modules`.
    """
    last = read_modules(folder)[-1] if has_modules(folder) else None
    return last.settings()["out_features"] if last and is_classifier(last) else None


def is_classifier(module):
    """Return whether a `Module` is a dense layer from the vector of a text to scores."""
    return module.kind == "Dense" and module.settings().get("module_output_name") == SCORES


def read_embedding_settings(folder):
    """Return {"max_length", "prompts", "default_prompt"} of a local folder, those that it has.

    `max_length` is in tokens; `prompts` are beginnings of texts by name.

    Raises:
        InputError: for a setting that makes another vector.
    """
    folder = pathlib.Path(folder)
    lengths, prompts = (_read_if_there(folder / name) for name in (LENGTHS, PROMPTS))
    if lengths.get("do_lower_case"):
        raise InputError(
            f"{folder / LENGTHS}: do_lower_case=true changes texts before the tokenizer; let the "
            "tokenizer do it, by its own do_lower_case, and set it to false here."
        )
    if prompts.get("truncate_dim"):
        raise InputError(
            f"{folder / PROMPTS}: truncate_dim={prompts['truncate_dim']} cuts vectors, which is "
            "not supported; take it out, and take the first entries where they are used."
        )
    config = _read_if_there(folder / "config.json")
    if read_modules(folder)[0].kind == STATIC:
        longest = config.get("max_length") or _cut_of_tokenizer(folder) or ANY_LENGTH
    else:
        longest = lengths.get("max_seq_length") or _length_of_tokenizer(folder, config)
    settings = {
        "max_length": longest,
        "prompts": prompts.get("prompts"),
        "default_prompt": prompts.get("default_prompt_name"),
    }
    return {name: value for name, value in settings.items() if value}


def _length_of_tokenizer(folder, config):
    """Return the most tokens by the tokenizer's settings, where version 6 has them, or None."""
    longest = read_settings(folder).get("model_max_length")
    positions = config.get("max_position_embeddings")
    # Many have 1e30, for any length.
    is_length = isinstance(longest, int) and isinstance(positions, int)
    return longest if is_length and 0 < longest <= positions else None


def _cut_of_tokenizer(folder):
    """Return the tokens to which the tokenizer.json of a StaticEmbedding cuts texts, or None."""
    place = foreign_static(folder)
    content = _read_if_there(place / "tokenizer.json") if place else {}
    return (content.get("truncation") or {}).get("max_length")


def read_modules(folder):
    """Return the `Module`s of a folder, the encoder first."""
    path = pathlib.Path(folder) / MODULES
    if not path.exists():  # of an early model2vec
        normalize = read_json(path.with_name("config.json")).get("normalize")
        return [Module(kind, path.parent) for kind in [STATIC] + ["Normalize"] * bool(normalize)]
    entries = read_json_data(path)
    if not isinstance(entries, list) or not all(map(_is_module, entries)):
        raise InputError(
            f"{path} is no list of modules, each with a type and a path; get it anew."
        )
    modules = [
        Module(entry["type"].rsplit(".", 1)[-1], path.parent / entry["path"]) for entry in entries
    ]
    encoders = [module for module in modules[:1] if module.kind in ("Transformer", STATIC)]
    if not encoders or (encoders[0].kind != STATIC and encoders[0].folder != path.parent):
        raise InputError(
            f"{path} does not begin with a Transformer in the folder itself, or a {STATIC}; give "
            "one that does, as sentence-transformers has saved them since its version 2."
        )
    return modules


def _is_module(entry):
    names = ("type", "path")
    return isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in names)


def _read_pooling(module):
    settings, path = module.settings(), module.path
    names = settings.get("pooling_mode")
    if names is None:
        names = [name for name, (_, flag) in MODES.items() if settings.get(flag)] or ["mean"]
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not {*names} <= {*MODES}:
        raise InputError(f"{path}: pooling_mode={names!r} must be of {', '.join(MODES)}.")
    if settings.get("include_prompt") is False:
        raise InputError(
            f"{path}: include_prompt=false leaves a prompt's tokens out of the mean, which is not "
            "supported; give a model that includes them."
        )
    return tuple(MODES[name][0] for name in names)


def _read_projection(module):
    settings, path = module.settings(), module.path
    activation = settings.get("activation_function", "torch.nn.modules.activation.Tanh")
    places = {settings.get(name) for name in ("module_input_name", "module_output_name")}
    if (
        activation not in ACTIVATIONS
        or settings.get("use_residual")
        or not places <= {None, "sentence_embedding"}
    ):
        raise InputError(
            f"{path}: only a Dense of the sentence embedding, without a residual and with one of "
            f"{', '.join(ACTIVATIONS)}, is supported."
        )
    if not isinstance(settings.get("out_features"), int):
        raise InputError(f"{path} has no out_features, the width of its output; get it anew.")
    return Projection(
        settings["out_features"], ACTIVATIONS[activation], settings.get("bias", True)
    )
