"""Averages the weights of models of one training into a folder of its own.

    python -m recipes.average_checkpoints --checkpoints='runs/x/checkpoints/*' \\
        --output_dir=runs/x_mean

A training keeps models for it by --keep_every or --keep_best. OUTPUT_DIR is a Hugging Face folder
to evaluate, fine-tune or export, as those of the models are. The generator that was trained with
a discriminator is averaged alike: --checkpoints='runs/x/checkpoints/*/generator'.
"""

import glob
import os

from absl import flags, logging

from recipes.shell import entry_point
from tfnlp import checkpoints
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
flags.DEFINE_list("checkpoints", None, "Folders of models, or quoted patterns of folders.")
flags.DEFINE_string("output_dir", None, "Folder to write the mean into.")
flags.mark_flags_as_required(["checkpoints", "output_dir"])


def main():
    folders = []
    for pattern in FLAGS.checkpoints:
        matches = sorted(filter(os.path.isdir, glob.glob(pattern)))
        if not matches:
            raise InputError(f"checkpoints={pattern} is no folder; see what a run has kept.")
        folders += matches
    if len(folders) < 2:
        raise InputError(f"checkpoints={folders[0]} is one folder alone; give two or more.")
    checkpoints.average_folders(folders, FLAGS.output_dir)
    logging.info("The mean of %d models is in %s.", len(folders), FLAGS.output_dir)


if __name__ == "__main__":
    entry_point.run(main)
