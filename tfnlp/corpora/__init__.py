"""Unlabelled text: documents of sentences in files, and tokenised shards on disk.

This package imports neither TensorFlow nor Keras, so that tokenising processes start fast.
"""

from tfnlp.corpora.corpus_preparation import prepare_corpus
from tfnlp.corpora.sentence_splitting import sentence_starts, split_sentences

__all__ = ["prepare_corpus", "sentence_starts", "split_sentences"]
