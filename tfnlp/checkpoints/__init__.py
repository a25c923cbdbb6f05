"""Checkpoint folders, of Hugging Face and of keras-hub, read and written."""

from tfnlp.checkpoints.folder import load_model, read_config, read_head, read_labels, save_model

__all__ = ["load_model", "read_config", "read_head", "read_labels", "save_model"]
