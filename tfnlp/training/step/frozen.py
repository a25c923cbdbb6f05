"""Freezing of a model's lower parts."""

from tfnlp.training.step.layer_wise_rates import BELOW, block_number
from tfnlp.utils.errors import InputError


def freeze(model, blocks=0, embeddings=False):
    """Keep weights as they are: no step of a training changes them, nor decays them.

    Args:
        model: of any family; of several models (a generator and a discriminator) each.
        blocks: the number of lowest blocks to freeze, at least 0. Blocks that share their
            weights (ALBERT) count as one.
        embeddings: whether to freeze the embeddings and tables of relative positions too.

    Raises:
        InputError: if there are fewer blocks.
    """
    numbers = {block_number(variable) for variable in model.variables} - {None}
    if blocks > len(numbers):
        raise InputError(
            f"freeze_layers={blocks} is more than the model's {len(numbers)} blocks; give fewer."
        )
    frozen = sorted(numbers)[:blocks]
    for variable in model.trainable_variables:
        below = embeddings and variable.path.partition("/")[0] in BELOW
        if below or block_number(variable) in frozen:
            variable.trainable = False
