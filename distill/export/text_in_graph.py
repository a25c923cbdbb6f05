"""Text classifiers with the tokenizer in the graph: a string in, probabilities out.

Such a file uses TFLite's own operations and three of TensorFlow Text's, `FastBertNormalize`,
`WhitespaceTokenizeWithOffsetsV2` and `FastWordpieceTokenizeWithOffsets`, which the runtime must
provide: in Python by `tensorflow_text`, see `distill.runtime.StringClassifier`; on a phone by
linking TensorFlow Text's TFLite kernels. MediaPipe lacks them.
"""

import numpy as np
import tensorflow as tf

from distill.export.character_rules import normalizer_model, word_rules
from tfnlp.tasks.kinds import CLASSIFIER
from tfnlp.text import WordPieceTokenizer
from tfnlp.utils.errors import InputError

# BERT limits a word to 100 characters, TensorFlow Text limits its bytes. The limits agree for
# Hangul, with three bytes a character, and differ for other scripts.
BYTES_IN_A_WORD = 300


def check_text_input(kind, tokenizer, fixed_lengths, pairs=False):
    """Raise an InputError if a file cannot take strings."""
    for refused, reason in (
        (kind != CLASSIFIER, f"is for classifiers, and the file is a {kind}'s"),
        (not isinstance(tokenizer, WordPieceTokenizer), "needs WordPiece"),
        (tokenizer.added_tokens, "has no added tokens, and the tokenizer has"),
        (fixed_lengths, "has no fixed lengths"),
        (pairs, "takes one string, and the model was trained on pairs of texts"),
    ):
        if refused:
            raise InputError(f"tokenizer_in_graph=True {reason}; leave it out.")


def text_input(tokenizer, max_length):
    """Build a function of strings (1,) to ids, mask and segment ids (1, L).

    Ids are truncated to `max_length`, with [CLS] and [SEP]. The normaliser maps code points by the
    tokenizer's own rules, which include spaces between words. So the graph reads texts as the
    tokenizer does, with two exceptions. A word above 100 characters is [UNK] in the tokenizer, one
    above 300 bytes in the graph, which is the same for Hangul alone. Where accents are stripped,
    several marks on one character that are no accents keep their order.
    """
    import tensorflow_text

    rules = word_rules(tokenizer.lowercase, tokenizer.strip_accents, tokenizer.split_cjk)
    model = np.frombuffer(normalizer_model(rules), "uint8")
    normalizer = tensorflow_text.FastBertNormalizer(model_buffer=tf.constant(model))
    words = tensorflow_text.WhitespaceTokenizer()
    pieces = tensorflow_text.FastWordpieceTokenizer(
        vocab=tokenizer.vocabulary,
        token_out_type=tf.int32,
        max_bytes_per_word=BYTES_IN_A_WORD,
        unknown_token="[UNK]",
        no_pretokenization=True,
    )
    first, last = ([tokenizer.token_id(token)] for token in ("[CLS]", "[SEP]"))

    def tokenize(text):
        ids = pieces.tokenize(words.tokenize(normalizer.normalize(text)).flat_values).flat_values
        ids = tf.concat([first, ids[: max_length - 2], last], axis=0)[None]
        return ids, tf.ones_like(ids), tf.zeros_like(ids)

    return tokenize
