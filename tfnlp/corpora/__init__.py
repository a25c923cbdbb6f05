"""Unlabelled text: documents of sentences in files, and tokenised shards on disk.

This package imports neither TensorFlow nor Keras, so that tokenising processes start fast.
"""

from tfnlp.corpora.prepare import prepare_corpus
from tfnlp.corpora.sentences import sentence_starts, split_sentences

__all__ = ["prepare_corpus", "sentence_starts", "split_sentences"]
