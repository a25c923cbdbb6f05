"""Arguments and tables of the evaluation of language models."""

from tfnlp.models import max_positions
from tfnlp.utils.errors import InputError

# The segment length of models with unlimited positions.
SEGMENT = 128


def check_evaluation(head, memory_lengths=None, stride=None):
    """Raise an InputError for a head that predicts no tokens, or an unsuitable option."""
    if head not in ("causal_lm", "masked_lm"):
        raise InputError(
            f"The model has the head {head!r}, of which there is no perplexity; give a causal or "
            "a masked language model."
        )
    for name, value in (("memory_lengths", memory_lengths), ("stride", stride)):
        if head == "masked_lm" and value is not None:
            raise InputError(
                f"{name}={value} has no effect on a masked language model; leave it out."
            )
    for length in memory_lengths or ():
        if not str(length).isdecimal():
            raise InputError(f"memory_lengths={length!r} must be whole numbers of at least 0.")


def figures_table(figures):
    """Format results, a list of dicts with the same keys, as lines of a table."""
    rows = [list(figures[0])]
    for row in figures:
        rows.append([f"{v:.4f}" if isinstance(v, float) else str(v) for v in row.values()])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def window_length(model, max_length):
    """Return the length of a window: `max_length`, or where None as many positions as possible."""
    positions = max_positions(model)
    if max_length is not None and positions is not None and max_length > positions:
        raise InputError(f"max_length={max_length} is above the model's {positions} positions.")
    return max_length or positions or SEGMENT
