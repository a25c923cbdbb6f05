"""Mean of the weights after the last epochs (Vaswani et al. 2017, section 6.1)."""

import pathlib

import numpy as np
import safetensors

from tfnlp.checkpoints.tensors import write_tensors
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import make_folder


class RecentWeights:
    """Weights after each of the last epochs, in files of a folder.

    Args:
        folder: of the files `epoch_1.safetensors`, ...; created if missing.
        count: n, number of epochs to keep.
    """

    def __init__(self, folder, count):
        self.folder, self.count = pathlib.Path(folder), count

    def keep(self, epoch, model):
        """Write the weights after an epoch, counted from 1, and delete files of older epochs."""
        make_folder(self.folder)
        arrays = {variable.path: np.asarray(variable) for variable in model.weights}
        write_tensors(self._path(epoch), arrays)
        for path in self.folder.glob("epoch_*.safetensors"):
            if not epoch - self.count < int(path.stem.removeprefix("epoch_")) <= epoch:
                path.unlink()

    def load_mean(self, model, epoch):
        """Set a model's weights to the mean over the n epochs that end with `epoch`.

        With fewer epochs than n it is the mean of all.

        Raises:
            InputError: if the file of an epoch is missing or broken.
        """
        epochs = range(max(epoch - self.count, 0) + 1, epoch + 1)
        sums = {variable.path: 0.0 for variable in model.weights}
        for number in epochs:
            path = self._path(number)
            try:
                with safetensors.safe_open(str(path), framework="numpy") as file:
                    for name in sums:
                        sums[name] = sums[name] + file.get_tensor(name).astype("float64")
            except (safetensors.SafetensorError, OSError) as e:
                raise InputError(
                    f"{path}, of the mean over {len(epochs)} epochs, cannot be read ({e}); start "
                    "the run anew by `overwrite`, or without the mean in another folder."
                ) from None
        for variable in model.weights:
            variable.assign(sums[variable.path] / len(epochs))

    def _path(self, epoch):
        return self.folder / f"epoch_{epoch}.safetensors"
