"""Settings of word2vec, fastText and GloVe, without TensorFlow."""

import dataclasses

from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class Word2VecSettings(Settings):
    """Settings of word2vec (Mikolov et al. 2013) and fastText (Bojanowski et al. 2017).

    Raises:
        InputError: for a setting out of its bounds, or a `max_ngram` below `min_ngram`.
    """

    architecture: str = setting(
        "skip_gram",
        "Each word of the window tells the middle one (skip_gram), or their mean does (cbow).",
        choices=("skip_gram", "cbow"),
    )
    objective: str = setting(
        "negative_sampling",
        "What the middle word is told from: drawn words, or the turns in a Huffman tree.",
        choices=("negative_sampling", "hierarchical_softmax"),
    )
    dim: int = setting(100, "Width of the vectors.", low=1)
    window: int = setting(5, "Words on each side at most; each width up to it is drawn.", low=1)
    negatives: int = setting(5, "Drawn words for each middle word.", low=1)
    subsample: float = setting(
        1e-3, "Share of the corpus above which a word is left out at random; 0 for none.", low=0
    )
    epochs: int = setting(5, "Passes over the corpus.", low=1)
    learning_rate: float = setting(0.025, "First learning rate; it falls to 0 linearly.", low=0)
    batch_words: int = setting(2000, "Middle words in a step.", low=1)
    max_ngram: int = setting(
        0,
        "Longest character n-gram that a vector is the mean of (fastText); 0: none.",
        low=0,
    )
    min_ngram: int = setting(3, "Shortest such n-gram.", low=1)
    buckets: int = setting(200_000, "Rows that n-grams share by their hash.", low=1)
    seed: int = setting(0, "Seed of all draws.", low=0)

    def __post_init__(self):
        super().__post_init__()
        if 0 < self.max_ngram < self.min_ngram:
            raise InputError(
                f"max_ngram={self.max_ngram} must be at least min_ngram={self.min_ngram}."
            )


@dataclasses.dataclass(frozen=True)
class GloveSettings(Settings):
    """Settings of GloVe (Pennington et al. 2014)."""

    dim: int = setting(100, "Width of the vectors.", low=1)
    window: int = setting(10, "Words on each side.", low=1)
    epochs: int = setting(25, "Passes over the counts.", low=1)
    learning_rate: float = setting(0.05, "Learning rate of AdaGrad.", low=0)
    x_max: float = setting(100.0, "Count from which a pair has full weight.", low=1)
    alpha: float = setting(0.75, "Power of smaller counts in the weight.", low=0)
    batch_pairs: int = setting(8192, "Pairs in a step.", low=1)
    seed: int = setting(0, "Seed of all draws.", low=0)
