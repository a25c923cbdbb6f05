"""Per-block accumulators for a loop that adds to one block after another."""

from typing import NamedTuple

from keras import ops


class StackedSums(NamedTuple):
    """Accumulators for a number of blocks that is unknown before the call."""

    blocks: object  # (blocks, ...)
    first: object  # which of them comes first


def zero_sums(count, shape, dtype):
    """Return zeros of a shape for each of `count` blocks, as the state of a loop.

    The result is a tuple of blocks if their number is known. A loop rotates a tuple without a
    copy; adding to a part of one array copies the whole array (TensorFlow, on a CPU).
    """
    if isinstance(count, int):
        return (ops.zeros(shape, dtype),) * count
    return StackedSums(ops.zeros((count, *shape), dtype), ops.convert_to_tensor(0, dtype="int32"))


def first_sum(sums):
    """Return the first block."""
    if isinstance(sums, StackedSums):
        return ops.take(sums.blocks, sums.first, axis=0)
    return sums[0]


def add_first(sums, added):
    """Return `sums` with `added` added to the first block."""
    block = first_sum(sums) + added
    if isinstance(sums, StackedSums):
        start = (sums.first, *(0 for _ in block.shape))
        return StackedSums(ops.slice_update(sums.blocks, start, block[None]), sums.first)
    return (block, *sums[1:])


def rotate(sums, steps):
    """Rotate `sums` so that block `steps` is first; a negative one counts from the end."""
    if isinstance(sums, StackedSums):
        first = ops.mod(sums.first + steps, ops.shape(sums.blocks)[0])
        return StackedSums(sums.blocks, first)
    steps %= len(sums)
    return sums[steps:] + sums[:steps]


def stack_sums(sums):
    """Return the blocks as one tensor (blocks, ...); they must be rotated back before."""
    return sums.blocks if isinstance(sums, StackedSums) else ops.stack(sums)
