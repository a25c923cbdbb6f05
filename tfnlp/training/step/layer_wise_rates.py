"""Layer-wise learning rate decay: lower rates for lower layers."""

import re

from tfnlp.utils.errors import InputError

# First path components of variables below the first block, in any family.
BELOW = ("embeddings", "relative_positions")
# DeBERTa v2's convolution is parallel to the first block.
BESIDE_FIRST = "convolution"
_BLOCK = re.compile(r"encoder(?:/block)?_(\d+)/")


def block_number(variable):
    """Return the number of the encoder block that a variable belongs to, from 0, or None."""
    block = _BLOCK.match(variable.path)
    return block and int(block[1])


def layer_depths(variables):
    """Return the distance of each variable from the top.

    Args:
        variables: of a model of any family.

    Returns:
        A list of integers: 0 for heads, poolers and a last norm, 1 for the top block, n for the
        lowest of n blocks, and n + 1 for embeddings and tables of relative positions. Blocks that
        share their weights (ALBERT) count as one. With several models (a generator and a
        discriminator) each counts its own blocks; a shared table belongs to the first.

    Raises:
        InputError: if there are no blocks.
    """
    firsts = [v.path.partition("/")[0] for v in variables]
    blocks = [block_number(v) for v in variables]
    tops = [-1]  # of each model
    models = []  # the model of each variable
    for first, block in zip(firsts, blocks, strict=True):
        # Embeddings precede a model's blocks: after blocks, they belong to the next model.
        if first in BELOW and tops[-1] >= 0:
            tops.append(-1)
        if block is not None:
            tops[-1] = max(tops[-1], block)
        models.append(len(tops) - 1)
    if min(tops) < 0:
        raise InputError(
            "`layer_decay` is for models with encoder blocks, of which this one has none; leave "
            "it out."
        )

    def depth(first, block, top):
        if block is not None:
            return top + 1 - block
        if first == BESIDE_FIRST:
            return top + 1
        return top + 2 if first in BELOW else 0

    return [depth(f, b, tops[m]) for f, b, m in zip(firsts, blocks, models, strict=True)]


def layer_factors(variables, decay):
    """Return the factor of the learning rate of each variable: decay ** depth.

    Clark et al. 2020 (ELECTRA), appendix B; Yang et al. 2019 (XLNet), appendix A.5. Heads have the
    full rate. ELECTRA's code gives every block, and the embeddings, one power more. XLNet's code
    multiplies gradients, which Adam then divides by their size.

    Args:
        variables: of a model of any family.
        decay: above 0, at most 1.
    """
    return [decay**depth for depth in layer_depths(variables)]
