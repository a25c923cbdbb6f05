"""Configs of models that pool token vectors without recurrence or attention."""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import BaseConfig, Pooling
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import Settings, check_at_least, setting

CHANNELS = ("non_static", "static", "multichannel")
# An id times this number stays below 2**31 for two million ids.
HASH_FACTOR = 1009
MAX_IDS = 2**31 // HASH_FACTOR - 1


@dataclasses.dataclass(frozen=True)
class WordModelConfig(Settings, BaseConfig):
    """Fields of all; a child may have further ones.

    Args:
        vocabulary_size: V, the number of tokens.
        hidden_dim: D, the width of the token vectors.
        dropout: applied to the vector of a text, before a head's last layer.
        initializer_range: standard deviation of fresh token vectors and heads.
        pad_token_id: the id that pads a batch.
    """

    vocabulary_size: int = 30522
    hidden_dim: int = 300
    dropout: float = 0.0
    initializer_range: float = 0.1
    pad_token_id: int = 0

    num_layers: ClassVar[int] = 0
    max_length: ClassVar[None] = None
    classifier_dropout: ClassVar[None] = None
    tie_embeddings: ClassVar[bool] = False
    attends: ClassVar[bool] = False
    whole_texts: ClassVar[bool] = True
    language_model: ClassVar[None] = None
    pooling: ClassVar[Pooling] = Pooling(None, None)


@dataclasses.dataclass(frozen=True)
class TextCnnConfig(WordModelConfig):
    """The sizes and rates of a convolutional network over word vectors (Kim 2014).

    Args: those of `WordModelConfig`, and
        channels: as in the help of its field; "non_static" with vectors that start at random is
            CNN-rand.
        filter_widths: the numbers of tokens in a window.
        num_filters: the feature maps of each width.
        max_norm: the largest norm of the last layer's weights for a class; None for any.
    """

    dropout: float = 0.5
    channels: str = setting(
        "non_static",
        "Word vectors of a textcnn: trained (non_static), kept as they start (static), or both "
        "(multichannel); non_static if not given.",
        choices=CHANNELS,
        rare=True,
    )
    filter_widths: tuple = (3, 4, 5)
    num_filters: int = 100
    max_norm: float | None = 3.0

    def __post_init__(self):
        super().__post_init__()
        for width in self.filter_widths:
            check_at_least(1, filter_widths=width)


@dataclasses.dataclass(frozen=True)
class BagConfig(WordModelConfig):
    """The sizes and rates of a bag of words and of their n-grams (Joulin et al. 2017, fastText).

    Args: those of `WordModelConfig`, and
        word_ngrams: the longest n-gram of tokens that has a vector; 1 for tokens alone.
        buckets: the number of vectors that n-grams share by their hash.
    """

    hidden_dim: int = 100
    word_ngrams: int = setting(
        1, "Longest n-gram of tokens in a bag; 1 if not given.", low=1, rare=True
    )
    buckets: int = setting(50_000, "Vectors that n-grams share.", low=1, high=MAX_IDS)

    def __post_init__(self):
        super().__post_init__()
        if self.word_ngrams > 1 and self.vocabulary_size > MAX_IDS:
            raise InputError(
                f"vocabulary_size={self.vocabulary_size} must be at most {MAX_IDS} with "
                f"word_ngrams={self.word_ngrams}, whose hash has 32 bits."
            )


@dataclasses.dataclass(frozen=True)
class StaticConfig(WordModelConfig):
    """The sizes of static vectors: a table of token vectors with a weight for each token.

    Args: those of `WordModelConfig`, and
        weighted: whether there are weights; else the table has them.
    """

    hidden_dim: int = 256
    weighted: bool = True
    pooling: ClassVar[Pooling] = Pooling("mean", None)
