"""Tensors of a folder, read and rewritten."""

import safetensors.numpy


def tensors_of(folder):
    return safetensors.numpy.load_file(folder / "model.safetensors")


def rewrite(folder, change):
    """Writes the folder's tensors again after `change(dict)`."""
    tensors = tensors_of(folder)
    change(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
