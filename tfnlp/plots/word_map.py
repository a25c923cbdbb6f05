"""Map of words in two dimensions, as a PNG or SVG."""

from sklearn.decomposition import PCA


def plot_word_map(vectors, path, count=200):
    """Draw the first words of `WordVectors` by the two main components of their unit vectors.

    Args:
        vectors: `WordVectors`, the commonest words first.
        path: of the PNG or SVG.
        count: the number of words.
    """
    draw_word_map(vectors, count).savefig(path, dpi=120)


def draw_word_map(vectors, count=200):
    """Return the matplotlib `Figure` that `plot_word_map` saves."""
    from matplotlib.figure import Figure

    words, points = vectors.words[:count], PCA(2).fit_transform(vectors.unit[:count])
    figure = Figure(figsize=(10, 8), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*points.T, ".", markersize=2, color="grey")
    for word, (x, y) in zip(words, points, strict=True):
        axes.annotate(word, (x, y), fontsize=7)
    axes.set_xlabel("first component")
    axes.set_ylabel("second component")
    return figure
