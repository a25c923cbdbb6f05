"""Functional models: a config in, a `keras.Model` from named inputs to a dict out."""

from tfnlp.models.bert import BertConfig, bert, bert_classifier

__all__ = ["BertConfig", "bert", "bert_classifier"]
