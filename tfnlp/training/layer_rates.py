"""Learning rates that are lower the nearer a layer is to the text."""

import re

from tfnlp.errors import InputError

# First parts of the paths of variables that are below the first block, in any family.
BELOW = ("embeddings", "relative_positions")
# DeBERTa v2's convolution stands beside the first block.
BESIDE_FIRST = "convolution"
_BLOCK = re.compile(r"encoder(?:/block)?_(\d+)/")


def layer_depths(variables):
    """How far from the top each variable is.

    Args:
        variables: of a model of any family.

    Returns:
        A list of integers: 0 for heads, poolers and a last norm, 1 for the top block, n for the
        lowest of n blocks, and n + 1 for embeddings and tables of relative positions. Blocks that
        share their weights (ALBERT) are one.

    Raises:
        InputError: if there are no blocks.
    """
    blocks = [_BLOCK.match(v.path) for v in variables]
    top = max((int(b[1]) for b in blocks if b), default=None)
    if top is None:
        raise InputError(
            "layer_decay is for models with encoder blocks, of which this one has none; leave it "
            "out."
        )

    def depth(variable, block):
        first = variable.path.partition("/")[0]
        if block:
            return top + 1 - int(block[1])
        if first == BESIDE_FIRST:
            return top + 1
        return top + 2 if first in BELOW else 0

    return [depth(v, b) for v, b in zip(variables, blocks, strict=True)]


def layer_factors(variables, decay):
    """What the learning rate of each variable is multiplied with: decay ** depth.

    Clark et al. 2020 (ELECTRA), appendix B; Yang et al. 2019 (XLNet), appendix A.5. Heads have the
    whole rate. ELECTRA's code leaves a power out between heads and the top block, and XLNet's
    multiplies gradients, which Adam then divides by their size.

    Args:
        variables: of a model of any family.
        decay: above 0, at most 1.
    """
    return [decay**depth for depth in layer_depths(variables)]
