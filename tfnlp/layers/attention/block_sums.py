"""Sums by block, to which a loop adds one block after another."""

from typing import NamedTuple

from keras import ops


class StackedSums(NamedTuple):
    """Sums of a number of blocks that is not known before the call."""

    blocks: object  # (blocks, ...)
    first: object  # which of them comes first


def zero_sums(count, shape, dtype):
    """Zeros of a shape for each of `count` blocks, to be passed through a loop.

    A tuple of the blocks where their number is known: a loop passes it on, turned, without a
    copy, while adding to a part of one array copies the whole (TensorFlow, on a CPU).
    """
    if isinstance(count, int):
        return (ops.zeros(shape, dtype),) * count
    return StackedSums(ops.zeros((count, *shape), dtype), ops.convert_to_tensor(0, dtype="int32"))


def first_sum(sums):
    """The block that comes first."""
    if isinstance(sums, StackedSums):
        return ops.take(sums.blocks, sums.first, axis=0)
    return sums[0]


def add_first(sums, added):
    """`sums` with something added to the block that comes first."""
    block = first_sum(sums) + added
    if isinstance(sums, StackedSums):
        start = (sums.first, *(0 for _ in block.shape))
        return StackedSums(ops.slice_update(sums.blocks, start, block[None]), sums.first)
    return (block, *sums[1:])


def turn(sums, steps):
    """`sums` with block number `steps` first; below 0 it is counted from the end."""
    if isinstance(sums, StackedSums):
        first = ops.mod(sums.first + steps, ops.shape(sums.blocks)[0])
        return StackedSums(sums.blocks, first)
    steps %= len(sums)
    return sums[steps:] + sums[:steps]


def stack_sums(sums):
    """(blocks, ...), once they are turned back."""
    return sums.blocks if isinstance(sums, StackedSums) else ops.stack(sums)
