"""Pipelines for fine-tuned models: texts in, answers out."""
