"""Plots of training logs, sweeps and model internals, as PNGs.

`plot_x` returns whether it plotted: without matplotlib, it logs a line instead. `draw_x` returns
the matplotlib `Figure`.
"""

import itertools
import math
import textwrap
import warnings

import numpy as np
from absl import logging

# Fonts with Hangul, and most of them with Chinese and Japanese characters, by system.
KOREAN = (
    *("Noto Sans CJK KR", "Noto Sans KR", "NanumGothic", "NanumBarunGothic", "UnDotum"),
    *("Malgun Gothic", "Apple SD Gothic Neo", "AppleGothic", "Arial Unicode MS", "Unifont"),
)
LINE = 80  # characters in a line of coloured text
COLUMN, BAR = 2.1, 1.1  # inches in a picture of paths: a concept, and the weight before it
NAME = 18  # characters in a line of a concept's or a relation's name there
DARK = 0.6  # numbers farther from 0 have a colour that black cannot be read on


def plot_curves(metrics, path, metric="accuracy"):
    """Plot each loss, and another metric, by epoch: one panel each, for training and dev.

    Losses are what ends in "loss"; a name with "val_" before it is the same of dev.

    Args:
        metrics: a list of dicts, `RunFolder.metrics()`.
        path: of the PNG.
        metric: the other metric; None for none.
    """
    return _write(path, "curves", draw_curves, (metrics, metric))


def draw_curves(metrics, metric="accuracy"):
    from matplotlib.ticker import MaxNLocator

    names = dict.fromkeys(name.removeprefix("val_") for m in metrics for name in m)
    losses = [name for name in names if name.endswith("loss")]
    # The whole loss first, whatever the order in which they were logged.
    keys = [*sorted(losses, key=lambda name: name != "loss"), *([metric] if metric else [])]
    epochs = [m["epoch"] for m in metrics]
    figure, panels = _panels(len(keys), 3, 4.5, 3.5)
    for axes, key in zip(panels, keys, strict=True):
        for name, label, color in ((key, "train", "C0"), (f"val_{key}", "dev", "C1")):
            if all(name in m for m in metrics):
                # JSON has no NaN: an epoch whose number was not finite is left out of the line.
                values = [math.nan if m[name] is None else m[name] for m in metrics]
                axes.plot(epochs, values, marker="o", color=color, label=label)
        axes.set(xlabel="epoch", ylabel=key.replace("_", " "))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend()
    return figure


def plot_variants(runs, summary, base, path):
    """Plot each figure by variant: a point per seed, and the mean with its standard error.

    Args:
        runs: {variant: {seed: {name: number}}}.
        summary: of them, from `tfnlp.utils.seed_statistics.summarise_variants`.
        base: the variant that others are compared with; its mean is a line.
        path: of the PNG.
    """
    return _write(path, "variants", draw_variants, (runs, summary, base))


def draw_variants(runs, summary, base):
    names = list(summary)
    metrics = list(summary[names[0]])
    figure, panels = _panels(len(metrics), 2, 5.5, 1.2 + 0.35 * len(names))
    for axes, metric in zip(panels, metrics, strict=True):
        for place, name in enumerate(names):
            values = [figures.get(metric) for figures in runs[name].values()]
            values = [v for v in values if v is not None]
            axes.plot(values, [place] * len(values), "o", color="C7", alpha=0.5, markersize=4)
            estimate = summary[name][metric].estimate
            if estimate is not None:
                style = {"fmt": "D", "color": "C0" if name == base else "C1", "capsize": 4}
                axes.errorbar(estimate.mean, place, xerr=estimate.error, **style)
                if name == base:
                    axes.axvline(estimate.mean, color="C0", alpha=0.4, linestyle="--")
        axes.set_yticks(range(len(names)), names)
        axes.set(ylim=(len(names) - 0.5, -0.5), xlabel=metric.replace("_", " "))
        axes.grid(alpha=0.3, axis="x")
    return figure


def plot_gradient_norms(norms, path):
    """Plot the norm of a gradient by the distance of the state in tokens, one line each.

    Args:
        norms: {name: (L,)}, from the first token on, as `tfnlp.inspection.gradient_norms` gives
            them.
        path: of the PNG.
    """
    return _write(path, "gradients", draw_gradient_norms, (norms,))


def draw_gradient_norms(norms):
    figure, (axes,) = _panels(1, 1, 6, 4)
    for name, values in norms.items():
        axes.plot(range(len(values)), values[::-1], label=name)
    axes.set(
        yscale="log", xlabel="tokens back", ylabel="norm of the last loss' gradient by the state"
    )
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def plot_alignments(weights, source, target, path):
    """Plot weights of target tokens over source tokens, one panel for each name.

    Args:
        weights: {name: (T, S)}, such as `tfnlp.inspection.alignments` gives.
        source: the S source tokens, strings.
        target: the T target tokens, strings.
        path: of the PNG.

    Raises:
        ValueError: if weights have another shape.
    """
    return _write(path, "alignment", draw_alignments, (weights, source, target))


def draw_alignments(weights, source, target):
    for name, matrix in weights.items():
        if tuple(matrix.shape) != (len(target), len(source)):
            raise ValueError(
                f"weights[{name!r}] has shape {tuple(matrix.shape)}, but there are {len(target)} "
                f"target tokens and {len(source)} source tokens."
            )
    # Tokens as they are, not as mathematics.
    shown = {"family": font_families("sans-serif"), "parse_math": False}
    size = 1.5 + 0.3 * len(source), 1.5 + 0.3 * len(target)
    figure, panels = _panels(len(weights), 4, *size)
    for axes, (name, matrix) in zip(panels, weights.items(), strict=True):
        axes.imshow(matrix, cmap="gray", vmin=0, vmax=1, aspect="equal")
        axes.set_xticks(range(len(source)), source, rotation=90, **shown)
        axes.set_yticks(range(len(target)), target, **shown)
        axes.xaxis.tick_top()
        if len(weights) > 1:
            axes.set_title(name, fontsize="small")
    return figure


def plot_activations(tokens, values, path):
    """Plot a text with each token coloured by a number: blue above 0, red below.

    Args:
        tokens: the text's tokens as strings, spaces and line ends in them.
        values: a number from -1 to 1 for each, such as a column of
            `tfnlp.inspection.activations`.
        path: of the PNG.

    Raises:
        ValueError: if there are not as many numbers as tokens.
    """
    return _write(path, "activations", draw_activations, (tokens, values))


def draw_activations(tokens, values):
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    places = list(_character_places(tokens, values))
    lines = 1 + max((row for row, *_ in places), default=0)
    figure = Figure(figsize=(0.11 * LINE, 0.22 * lines + 0.1))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-0.5, LINE + 0.5), ylim=(lines, 0))
    axes.axis("off")
    colours = matplotlib.colormaps["RdBu"]
    # Tokens as they are, not as mathematics.
    shown = {"family": font_families("monospace"), "fontsize": 8, "parse_math": False}
    for row, column, character, value in places:
        colour = colours((1 + float(value)) / 2)
        axes.add_patch(Rectangle((column, row), 1, 1, color=colour, linewidth=0))
        shown["color"] = "white" if abs(value) > DARK else "black"
        axes.text(column + 0.5, row + 0.5, character, ha="center", va="center", **shown)
    return figure


def _character_places(tokens, values):
    """Yield line, column, text and its token's number of each character."""
    row = column = 0
    for token, value in zip(tokens, values, strict=True):
        for character in token:
            if column == LINE:
                row, column = row + 1, 0
            yield row, column, " " if character in "\n\t\r" else character, value
            row, column = (row + 1, 0) if character == "\n" else (row, column + 1)


def plot_hidden_states(tokens, states, path, units=40):
    """Plot the hidden state along a text: a column for each token, a row for each unit.

    The units that vary most are shown, those first that are highest first in the text.

    Args:
        tokens: the L tokens as strings.
        states: (L, D) numbers from -1 to 1, such as `tfnlp.inspection.activations` gives them.
        path: of the PNG.
        units: the number of units at most.

    Raises:
        ValueError: if there are not as many states as tokens.
    """
    return _write(path, "hidden states", draw_hidden_states, (tokens, states, units))


def draw_hidden_states(tokens, states, units=40):
    if len(tokens) != len(states):
        raise ValueError(f"There are {len(tokens)} tokens, but {len(states)} states.")
    shown = np.argsort(-np.var(states, axis=0), kind="stable")[:units]
    shown = shown[np.argsort(np.argmax(states[:, shown], axis=0), kind="stable")]
    size = 1.5 + 0.16 * len(tokens), 1 + 0.14 * len(shown)
    figure, (axes,) = _panels(1, 1, *size)
    image = axes.imshow(states[:, shown].T, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    # Tokens as they are, not as mathematics; a space or a line end is a mark.
    names = [token.replace(" ", "␣").replace("\n", "⏎") for token in tokens]
    fonts = {"family": font_families("monospace"), "parse_math": False}
    rotation = 90 if max(map(len, names), default=0) > 1 else 0
    axes.set_xticks(range(len(names)), names, rotation=rotation, fontsize=8, **fonts)
    axes.set_yticks(range(len(shown)), shown, fontsize=6)
    axes.set(ylabel="unit")
    figure.colorbar(image, ax=axes, fraction=0.03)
    return figure


def plot_layer_shares(shares, path):
    """Plot the shares of a pretrained model's layers in several tasks, a group of bars each.

    Args:
        shares: {task: (K,)}, such as `ScalarMix.shares` gives them.
        path: of the PNG.
    """
    return _write(path, "layers", draw_layer_shares, (shares,))


def draw_layer_shares(shares):
    figure, (axes,) = _panels(1, 1, 2 + 1.5 * len(shares), 3.5)
    layers = range(len(next(iter(shares.values()))))
    width = 0.8 / len(layers)
    for layer in layers:
        places = [task + (layer - (len(layers) - 1) / 2) * width for task in range(len(shares))]
        heights = [float(values[layer]) for values in shares.values()]
        axes.bar(places, heights, width, label=f"layer {layer}" if layer else "words")
    axes.axhline(1 / len(layers), color="grey", linestyle="--", linewidth=1)
    axes.set_xticks(range(len(shares)), [task.replace("/", "/\n") for task in shares])
    axes.set(ylabel="share of the mix")
    figure.legend(loc="outside upper center", ncols=len(layers))
    return figure


def plot_word_map(vectors, path, count=200):
    """Plot the first words of `WordVectors`, near ones beside each other.

    The places are t-SNE's (van der Maaten & Hinton 2008) by cosine distances; a word that would
    cover a commoner one is a point alone.

    Args:
        vectors: `WordVectors`, the commonest words first.
        path: of the PNG.
        count: the number of words.
    """
    return _write(path, "words", draw_word_map, (vectors, count))


def draw_word_map(vectors, count=200):
    from sklearn.manifold import TSNE

    figure, (axes,) = _panels(1, 1, 10, 8)
    unit = vectors.unit[:count]
    perplexity = min(30, (len(unit) - 1) / 3)
    places = TSNE(perplexity=perplexity, metric="cosine", init="random", random_state=0)
    points = places.fit_transform(unit)
    axes.plot(*points.T, ".", markersize=2, color="grey")
    axes.set(xticks=[], yticks=[])
    shown = {"fontsize": 7, "family": font_families("sans-serif"), "parse_math": False}
    shown |= {"xytext": (2, 2), "textcoords": "offset points"}
    figure.draw_without_rendering()  # sets the places of the axes
    boxes = []
    for word, point in zip(vectors.words[:count], points, strict=True):
        text = axes.annotate(word, point, **shown)
        box = text.get_window_extent()
        if any(box.overlaps(other) for other in boxes):
            text.remove()
        else:
            boxes.append(box)
    return figure


def plot_paths(prompt, endings, path, most=5):
    """Plot the paths of a knowledge graph that a model looks at, a row each, with their weights.

    Args:
        prompt: a string.
        endings: `tfnlp.training.EndingPaths` of each ending of the prompt.
        path: of the PNG.
        most: the most paths of an ending, those of the largest weights.
    """
    return _write(path, "paths", draw_paths, (prompt, endings, most))


def draw_paths(prompt, endings, most=5):
    from matplotlib.figure import Figure

    lengths = (len(concepts) for e in endings for _, concepts, _ in e.paths[:most])
    width = BAR + COLUMN * max(3, *lengths, 0)
    rows = list(_rows_of_paths(prompt, endings, most, int(8 * width)))
    height = sum(row[0] for row in rows) + 0.1
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-0.1, width - 0.1), ylim=(height - 0.1, 0))
    axes.axis("off")
    fonts, top = font_families("sans-serif"), 0
    for height, draw, content in rows:
        draw(axes, top + height / 2, fonts, *content)
        top += height
    return figure


def _rows_of_paths(prompt, endings, most, characters):
    """Yield the height of each row in inches, the function that draws it, and what it draws."""

    def text(words, **style):
        words = textwrap.fill(words, characters)
        return 0.32 + 0.19 * words.count("\n"), _draw_text, (words, style)

    best = max(endings, key=lambda ending: ending.probability)
    yield text(prompt, fontsize=12, weight="bold")
    for ending in endings:
        weight = "bold" if ending is best else "normal"
        yield text(f"{ending.probability:.0%}  {ending.ending}", weight=weight)
        for weight, *names in ending.paths[:most]:
            concepts, relations = map(_wrapped, names)
            # A relation stands above its arrow, in half of the row.
            height = max(0.16 + 0.16 * _most_lines(concepts), 0.14 + 0.22 * _most_lines(relations))
            yield height, _draw_path, (weight, concepts, relations)
        if not ending.paths:
            yield text("no path: by its text alone", style="italic", color="grey")


def _wrapped(names):
    return [textwrap.fill(name.replace("_", " "), NAME) for name in names]


def _most_lines(names):
    return max(1 + name.count("\n") for name in names)


def _draw_text(axes, y, fonts, text, style):
    axes.text(0, y, text, family=fonts, va="center", parse_math=False, **style)


def _draw_path(axes, y, fonts, weight, concepts, relations):
    """Draw the weight of a path as a bar, and its concepts as boxes with arrows between."""
    shown = {"family": fonts, "va": "center", "ha": "center", "parse_math": False}
    axes.text(0.2, y, f"{weight:.2f}", fontsize=8, family=fonts, va="center")
    axes.barh(y, weight * 0.5, height=0.12, left=0.55, color="C0")
    box = {"boxstyle": "round,pad=0.3", "facecolor": (0.12, 0.47, 0.71, 0.1 + 0.5 * weight)}
    places = [BAR + COLUMN * (i + 0.5) for i in range(len(concepts))]
    boxes = [
        axes.text(x, y, name, fontsize=8, bbox=box | {"edgecolor": "grey"}, **shown)
        for x, name in zip(places, concepts, strict=True)
    ]
    for (first, second), name in zip(itertools.pairwise(boxes), relations, strict=True):
        arrow = {"arrowstyle": "<-" if name.startswith("-") else "->", "color": "grey"}
        ends = {"patchA": first.get_bbox_patch(), "patchB": second.get_bbox_patch()}
        x, target = first.get_position()[0], second.get_position()[0]
        axes.annotate("", (target, y), (x, y), arrowprops=arrow | ends)
        label = {"fontsize": 6.5, "color": "dimgrey"} | shown | {"va": "bottom"}
        axes.text((x + target) / 2, y - 0.04, name.removeprefix("-"), **label)


def font_families(first):
    """Return the names of fonts in order of lookup: `first`, then the installed ones."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [first, *(name for name in KOREAN if name in installed)]


def _panels(count, columns, width, height):
    """Return a figure with `count` panels in at most `columns`, and an iterator of their axes."""
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, (figure.add_subplot(rows, columns, i + 1) for i in range(count))


def _write(path, subject, draw, arguments):
    """Write the figure of `draw(*arguments)`; warn in one line if a font lacks characters.

    Returns:
        Whether it was written. Without matplotlib, a line is logged instead.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            draw(*arguments).savefig(path, dpi=120)
    except ImportError:
        logging.info("No plot of the %s: pip install matplotlib for one.", subject)
        return False
    missing = set()
    for warning in caught:
        if "missing from font" in str(warning.message):
            missing.add(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if missing:
        logging.warning(
            "%s shows boxes for %d characters that no installed font has; install one, such as "
            "Noto Sans CJK, and plot it again.",
            path,
            len(missing),
        )
    return True
