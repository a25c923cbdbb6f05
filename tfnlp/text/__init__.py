"""Text to token ids: tokenizers, readers of labelled files, batches by length."""

from tfnlp.text.batches import LengthBatches
from tfnlp.text.byte_level_bpe import ByteLevelBpeTokenizer, train_byte_level_bpe
from tfnlp.text.character_vocabulary import train_characters
from tfnlp.text.encoding import Encoding, Encodings
from tfnlp.text.readers import Examples, read_examples
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.text.tokenizer_loading import load_tokenizer, train_tokenizer
from tfnlp.text.unigram import UnigramTokenizer, train_unigram
from tfnlp.text.wordpiece import WordPieceTokenizer, train_wordpiece

__all__ = [
    "ByteLevelBpeTokenizer",
    "Encoding",
    "Encodings",
    "Examples",
    "LengthBatches",
    "Tokenizer",
    "UnigramTokenizer",
    "WordPieceTokenizer",
    "load_tokenizer",
    "read_examples",
    "train_byte_level_bpe",
    "train_characters",
    "train_tokenizer",
    "train_unigram",
    "train_wordpiece",
]
