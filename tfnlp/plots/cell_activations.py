"""Plot of a text coloured by a cell's activation, as a PNG."""

from absl import logging

from tfnlp.plots.fonts import font_families, save_figure

# Characters in a line.
LINE = 80
# Numbers farther from 0 have a colour that black cannot be read on.
DARK = 0.6


def plot_activations(tokens, values, path):
    """Plot a text with each token coloured by a number: blue above 0, red below.

    Args:
        tokens: the text's tokens as strings, spaces and line ends in them.
        values: a number from -1 to 1 for each, such as a column of
            `tfnlp.inspection.activations`.
        path: of the PNG.

    Returns:
        Whether it was plotted. Without matplotlib, a line is logged instead.

    Raises:
        ValueError: if there are not as many numbers as tokens.
    """
    try:
        figure = draw_activations(tokens, values)
    except ImportError:
        logging.info("No plot of the activations: install tfnlp[plots] for one.")
        return False
    save_figure(figure, path)
    return True


def draw_activations(tokens, values):
    """Return the matplotlib `Figure` that `plot_activations` saves."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    places = list(character_places(tokens))
    if len(values) != len(tokens):
        raise ValueError(f"There are {len(values)} values for {len(tokens)} tokens.")
    lines = 1 + max((row for row, _, _, _ in places), default=0)
    figure = Figure(figsize=(0.11 * LINE, 0.22 * lines + 0.1))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-0.5, LINE + 0.5)
    axes.set_ylim(lines, 0)
    axes.axis("off")
    colours, family = matplotlib.colormaps["RdBu"], font_families("monospace")
    for row, column, character, token in places:
        colour = colours((1 + float(values[token])) / 2)
        axes.add_patch(Rectangle((column, row), 1, 1, color=colour, linewidth=0))
        # As they are, not as mathematics.
        axes.text(
            *(column + 0.5, row + 0.5, character),
            color="white" if abs(values[token]) > DARK else "black",
            family=family,
            fontsize=8,
            ha="center",
            va="center",
            parse_math=False,
        )
    return figure


def character_places(tokens):
    """Yield the line, the column, the character and the token's number of each character."""
    row = column = 0
    for number, token in enumerate(tokens):
        for character in token:
            if column == LINE:
                row, column = row + 1, 0
            yield row, column, " " if character in "\n\t\r" else character, number
            row, column = (row + 1, 0) if character == "\n" else (row, column + 1)
