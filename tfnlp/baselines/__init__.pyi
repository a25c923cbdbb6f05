"""Classical methods as baselines: bags of words, linear classifiers, distances of documents."""

from .bag_of_words import BagOfWords as BagOfWords
from .bag_of_words import NearestSpelling as NearestSpelling
from .bag_of_words import make_vectorizer as make_vectorizer
from .document_distances import Document as Document
from .document_distances import DocumentIndex as DocumentIndex
from .document_distances import centroid_distance as centroid_distance
from .document_distances import relaxed_distance as relaxed_distance
from .document_distances import word_movers_distance as word_movers_distance
from .linear_classifiers import CLASSIFIERS as CLASSIFIERS
from .linear_classifiers import LinearClassifier as LinearClassifier
from .linear_classifiers import compare_baselines as compare_baselines
