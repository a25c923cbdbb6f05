"""Lookup of checkpoints: a local folder, or a model on the Hugging Face Hub or Kaggle by name.

This module is not in `tfnlp/checkpoints/`, so that tokenizers are fetched without Keras.
"""

import functools
import pathlib
import re

import huggingface_hub as hub
from tqdm import tqdm

from tfnlp.utils.errors import InputError, spelt_alike
from tfnlp.utils.progress import bar_settings

# "owner/model", or "model" for the oldest ones; then "@" and a branch, tag or commit.
NAME = re.compile(r"(hf://)?(?P<name>(\w[\w.-]*/)?\w[\w.-]*)(@(?P<revision>[^@\s]+))?", re.ASCII)
KAGGLE = "kaggle://"
# The form of keras-hub's own names for presets of the families here, such as "bert_base_en".
PRESET = re.compile(r"(albert|bert|deberta_v3|distil_bert|electra|gpt2|roberta)_\w+", re.ASCII)
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "model.ckpt.index")
# The commit of each name and revision, so that a process uses one even if the branch moves.
_COMMITS = {}


def find_folder(source, files):
    """Return the folder of a checkpoint or of a tokenizer, fetched from the Hub if needed.

    Args:
        source: a folder, or the name of a model on the Hugging Face Hub, such as
            "sentence-transformers/all-MiniLM-L6-v2" or "name@revision"; or of a keras-hub preset
            on Kaggle, such as "bert_base_en" or "kaggle://keras/bert/keras/bert_base_en". A local
            folder takes precedence over a model of the same name.
        files: names of the files to fetch from the Hub; those that the model lacks are skipped.

    Returns:
        A `pathlib.Path`; for a model on the Hub, the folder of its commit in the Hub's cache; for
        a preset on Kaggle, the folder in Kaggle's cache, with all its files.

    Raises:
        InputError: if there is neither a folder nor a model, if it is the folder of a run, or if
            files could not be fetched.
    """
    folder = pathlib.Path(source)
    if source and folder.is_dir():
        _check_not_run(folder)
        return folder
    check_source(source)
    if is_kaggle_name(source):
        return _fetch_from_kaggle(source)
    return _fetch_files(source, files)


def check_source(source):
    """Raise an InputError for what is no folder and cannot be a name on the Hub or Kaggle."""
    is_folder = source and pathlib.Path(source).is_dir()
    if not (is_folder or is_remote(source)):
        raise InputError(
            f"{source or '(nothing)'} is no folder; give that of a checkpoint or of a tokenizer, "
            "or a name on the Hugging Face Hub, such as sentence-transformers/all-MiniLM-L6-v2."
        )


def is_remote(source):
    """Return whether `source` is not a local path and could be a name on the Hub or Kaggle."""
    return is_hub_name(source) or is_kaggle_name(source)


def is_hub_name(source):
    """Return whether `source` is not a local path and could be a name on the Hub."""
    if not isinstance(source, str) or pathlib.Path(source).exists() or is_kaggle_name(source):
        return False
    return NAME.fullmatch(source) is not None


def is_kaggle_name(source):
    """Return whether `source` is not a local path and is the name of a preset on Kaggle."""
    if not isinstance(source, str) or pathlib.Path(source).exists():
        return False
    return source.startswith(KAGGLE) or PRESET.fullmatch(source) is not None


def fetch_weights(source, folder, names):
    """Fetch weight files into the cached folder of a model on the Hub.

    An interrupted download is resumed; one that fails leaves no file.

    Args:
        source: name of the model, as in `find_folder`.
        folder: the folder that `find_folder` returned for it.
        names: names of the files; existing files are not fetched again.

    Raises:
        InputError: if a file does not exist or could not be fetched.
    """
    for file in names:
        if (folder / file).exists():
            continue
        try:
            _download(source, folder, file)
        except Exception as e:  # errors of HTTP, Xet and disk have no common class
            raise _explained(e, source, file) from e


def fetch_whole(source, folder, file, names):
    """Fetch the single weight file that replaces shards, if the model on the Hub has it.

    It takes precedence over shards, as in `transformers` and in a local folder that has both.

    Args:
        source, folder: as in `fetch_weights`.
        file: name of the single file.
        names: names of the shards; if all of them exist, nothing is fetched.

    Raises:
        InputError: if the file exists and could not be fetched.
    """
    if all((folder / name).exists() for name in names):
        return
    try:
        _download(source, folder, file)
    except hub.errors.EntryNotFoundError:
        pass  # also while offline: fetching the shards next reports that
    except Exception as e:  # as above
        raise _explained(e, source, file) from e


def _download(source, folder, file):
    name = NAME.fullmatch(source)["name"]
    hub.hf_hub_download(name, file, revision=folder.name, tqdm_class=_DownloadBar)


def refused_pickle(path):
    """Return the `InputError` for weights in a pickle."""
    return InputError(
        f"{path} is not safetensors, and tfnlp never opens pickles, which can run code; convert "
        "it once with transformers: AutoModel.from_pretrained(folder).save_pretrained(folder)."
    )


def _check_not_run(folder):
    if (folder / "flags.json").exists() and not (folder / "config.json").exists():
        best = folder / "best"
        raise InputError(f"{folder} is the folder of a run; give that of its model, {best}.")


def _fetch_files(source, files):
    name, revision = NAME.fullmatch(source).group("name", "revision")
    commit = _COMMITS.get(source, revision)
    hooks = hub.get_session().event_hooks["request"]
    if _end_in_time not in hooks:
        hooks.append(_end_in_time)
    try:
        folder = hub.snapshot_download(
            name, revision=commit, allow_patterns=list(files), tqdm_class=_NoBar
        )
    except Exception as e:  # as above
        raise _explained(e, source) from e
    folder = pathlib.Path(folder)
    _COMMITS[source] = folder.name
    return folder


def _end_in_time(request):
    """Limit the seconds that a request waits for a silent server, where the client has no limit.

    The Hub's client waits without end for the commit and the files of a model.
    """
    limits = request.extensions.get("timeout", {})
    seconds = hub.constants.HF_HUB_ETAG_TIMEOUT
    request.extensions["timeout"] = {name: limit or seconds for name, limit in limits.items()}


@functools.cache  # a process sees one version of a preset
def _fetch_from_kaggle(source):
    """Return the folder of a preset in Kaggle's cache, fetched whole unless it is there."""
    handle = source
    if not source.startswith(KAGGLE):
        import keras_hub  # loads TensorFlow; it has the table of names

        presets = keras_hub.models.Backbone.presets
        if source not in presets:
            hint = spelt_alike(source, presets)
            raise InputError(f"{source} is no folder, and no preset of keras-hub{hint}.")
        handle = presets[source]["kaggle_handle"]
    import kagglehub  # keras-hub fetches by it, into the same cache

    try:
        return pathlib.Path(kagglehub.model_download(handle.removeprefix(KAGGLE)))
    except Exception as e:  # as above
        reason = str(e).strip().partition("\n")[0].rstrip(".") or type(e).__name__
        raise InputError(
            f"{handle} could not be fetched ({reason}); check the name and the connection, and "
            "for a model with terms accept them and give your token (~/.kaggle)."
        ) from e


class _DownloadBar(tqdm):
    """Progress bar with the settings of tfnlp, off where the Hub's own setting turns bars off."""

    def __init__(self, *args, **kwargs):
        kwargs.pop("name", None)  # some versions of the Hub pass a bar group
        settings = bar_settings() | {"disable": hub.utils.are_progress_bars_disabled()}
        super().__init__(*args, **kwargs | settings)


class _NoBar(tqdm):
    """Disabled progress bar, for small or cached files."""

    def __init__(self, *args, **kwargs):
        kwargs.pop("name", None)
        super().__init__(*args, **kwargs | {"disable": True})


def _explained(error, source, file=None):
    """Return the `InputError` that explains in one sentence why a download failed."""
    errors, constants = hub.errors, hub.constants
    name, revision = NAME.fullmatch(source).group("name", "revision")
    *_, cause = _causes(error)
    reason = str(cause).strip().partition("\n")[0].rstrip(".") or type(cause).__name__
    missing = f"{file} of {source}" if file else source
    token = "HF_TOKEN, or by the command hf auth login"
    match error:
        case errors.GatedRepoError():
            text = (
                f"{name} is open to those who accepted its terms: do so at "
                f"{constants.ENDPOINT}/{name}, and give your token ({token})."
            )
        case errors.RevisionNotFoundError():
            text = (
                f"{name} on the Hugging Face Hub has no revision {revision}; give one of its "
                "branches, tags or commits."
            )
        case errors.RepositoryNotFoundError():
            text = (
                f"{source} is neither a folder here nor a public model on the Hugging Face Hub; "
                f"check the name or, if the model is private, give your token ({token})."
            )
        case errors.LocalEntryNotFoundError() | errors.OfflineModeIsEnabled():
            place = "not in the cache" if file else "neither a folder here nor in the cache"
            text = (
                f"{missing} is {place}, and {constants.ENDPOINT} did not answer ({reason}); check "
                "the connection, or the name."
            )
            if constants.HF_HUB_OFFLINE:
                text = (
                    f"{missing} is not in the cache, {constants.HF_HUB_CACHE}, and HF_HUB_OFFLINE "
                    "keeps from fetching it; unset it once, or copy the cache from elsewhere."
                )
        case errors.EntryNotFoundError():
            files = hub.HfApi().list_repo_files(name, revision=_COMMITS.get(source, revision))
            for pickle in set(PICKLES).intersection(files):
                return refused_pickle(f"{source} on the Hugging Face Hub: {pickle}")
            text = (
                f"{source} on the Hugging Face Hub holds no {file}; take a model that is saved "
                "with safetensors."
            )
        case _:
            text = (
                f"The download of {file or 'the files'} of {name} broke off ({reason}), and "
                "nothing of it is used; try again."
            )
    return InputError(text)


def _causes(error):
    """Yield an error and its chain of causes."""
    while error is not None:
        yield error
        error = error.__cause__
