"""Averages of the weights of models of one architecture."""

import pathlib
import shutil

import numpy as np
import safetensors

from tfnlp.checkpoints.tensors import WEIGHTS, write_tensors
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, check_absent, make_folder, read_json


def average_folders(folders, output):
    """Write the folder of the mean of several models' weights.

    Izmailov et al. 2018 ('Averaging Weights Leads to Wider Optima'), for models of one training.
    Tensors are averaged in float64, one at a time; whole numbers stay those of the first folder.
    Config, tokenizer and labels are copied from it.

    Args:
        folders: of models that `save_model` wrote.
        output: the folder to write; no model may be in it.

    Raises:
        InputError: if configs or tensors differ, a folder has no model.safetensors, or one is in
            `output`.
    """
    first, *others = folders = [pathlib.Path(folder) for folder in folders]
    output = pathlib.Path(output)
    check_absent(output / "config.json", output / WEIGHTS)
    config = read_json(first / "config.json")
    for folder in others:
        if read_json(folder / "config.json") != config:
            raise InputError(
                f"{folder / 'config.json'} differs from that of {first}; the mean is of models of "
                "one architecture and one task."
            )
    # Beside the weights those of an embedder's modules, whose folders begin with a number.
    places = [first, *(path for path in first.glob("[0-9]*_*") if path.is_dir())]
    weights = [path.relative_to(first) / WEIGHTS for path in places if (path / WEIGHTS).exists()]
    if not (first / WEIGHTS).exists():
        weights.append(pathlib.Path(WEIGHTS))  # whose absence is named
    tensors = {name: _mean_tensors([folder / name for folder in folders]) for name in weights}
    make_folder(output)
    for place in places:
        to = output / place.relative_to(first)
        make_folder(to)
        for path in place.iterdir():
            if path.is_file() and path.name[0] != "." and path.name not in (WEIGHTS, "README.md"):
                with atomic_replace(to / path.name) as temporary:
                    shutil.copyfile(path, temporary)
    for name, means in tensors.items():
        write_tensors(output / name, means)


def _mean_tensors(paths):
    """Return {name: mean} of the tensors of files."""
    try:
        files = [safetensors.safe_open(str(path), framework="numpy") for path in paths]
        names = set(files[0].keys())
        means = {}
        for path, file in zip(paths, files, strict=True):
            if set(file.keys()) != names:
                raise InputError(f"{path} has other tensors than {paths[0]}; leave it out.")
        for name in sorted(names):
            arrays = [file.get_tensor(name) for file in files]
            means[name] = _mean(arrays)
        return means
    except (safetensors.SafetensorError, OSError) as e:
        raise InputError(f"The weights cannot be read ({e}); give folders of models.") from None


def _mean(arrays):
    if not np.issubdtype(arrays[0].dtype, np.floating):
        return arrays[0]
    return np.mean(arrays, axis=0, dtype="float64").astype(arrays[0].dtype)
