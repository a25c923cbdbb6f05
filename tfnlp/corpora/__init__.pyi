"""Unlabelled text: documents of sentences in files, and tokenised shards on disk.

This package imports neither TensorFlow nor Keras, so that tokenising processes start fast."""

from .corpus_preparation import CorpusSettings as CorpusSettings
from .corpus_preparation import prepare_corpus as prepare_corpus
from .documents import find_files as find_files
from .documents import hold_out as hold_out
from .documents import read_documents as read_documents
from .documents import warn_of_unknown as warn_of_unknown
from .sentence_splitting import sentence_starts as sentence_starts
from .sentence_splitting import split_sentences as split_sentences
