"""Text to token ids: tokenizers, readers of labelled files, batches by length."""

from tfnlp.text.batches import LengthBatches
from tfnlp.text.readers import Examples, read_examples
from tfnlp.text.wordpiece import WordPieceTokenizer, train_wordpiece

__all__ = [
    "Examples",
    "LengthBatches",
    "WordPieceTokenizer",
    "read_examples",
    "train_wordpiece",
]
