"""Functional models: a config in, a `keras.Model` from named inputs to a dict out."""

from tfnlp.models.bert import BertConfig, bert, bert_classifier
from tfnlp.models.vocabulary import check_vocabulary

__all__ = ["BertConfig", "bert", "bert_classifier", "check_vocabulary"]
