"""Unlabelled text: files as documents of sentences, and those as tokenised shards on disk.

Nothing here imports TensorFlow or Keras, so that the processes that tokenise start at once.
"""

from tfnlp.corpora.prepare import prepare_corpus
from tfnlp.corpora.sentences import sentence_starts, split_sentences

__all__ = ["prepare_corpus", "sentence_starts", "split_sentences"]
