"""Classical methods: bags of words, linear classifiers, n-grams, word vectors, distances.

Decisions: docs/decisions/baselines.md.
"""

from .bag_of_words import BagOfWords as BagOfWords
from .bag_of_words import NearestSpelling as NearestSpelling
from .bag_of_words import make_vectorizer as make_vectorizer
from .document_distances import Document as Document
from .document_distances import DocumentIndex as DocumentIndex
from .document_distances import centroid_distance as centroid_distance
from .document_distances import relaxed_distance as relaxed_distance
from .document_distances import word_movers_distance as word_movers_distance
from .glove import Glove as Glove
from .glove import count_pairs as count_pairs
from .korean_morphemes import morphemes as morphemes
from .linear_classifiers import CLASSIFIERS as CLASSIFIERS
from .linear_classifiers import LinearClassifier as LinearClassifier
from .linear_classifiers import compare_baselines as compare_baselines
from .linear_classifiers import linear_figures as linear_figures
from .ngram_lm import NgramModel as NgramModel
from .ngram_lm import NgramSettings as NgramSettings
from .ngram_lm import evaluate_ngrams as evaluate_ngrams
from .spelling_correction import SpellingCorrector as SpellingCorrector
from .spelling_correction import SpellingSettings as SpellingSettings
from .word2vec import Word2Vec as Word2Vec
from .word_corpus import SPLITTERS as SPLITTERS
from .word_corpus import read_word_corpus as read_word_corpus
from .word_evaluation import pooled_score as pooled_score
from .word_evaluation import read_analogies as read_analogies
from .word_evaluation import read_word_pairs as read_word_pairs
from .word_evaluation import score_analogies as score_analogies
from .word_evaluation import score_similarity as score_similarity
from .word_vector_settings import GloveSettings as GloveSettings
from .word_vector_settings import Word2VecSettings as Word2VecSettings
from .word_vectors import WordVectors as WordVectors
