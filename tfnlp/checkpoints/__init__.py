"""Hugging Face checkpoint folders, read and written."""

from tfnlp.checkpoints.folder import (
    load_model,
    read_config,
    read_head,
    read_labels,
    read_task_settings,
    save_model,
)

__all__ = [
    "load_model",
    "read_config",
    "read_head",
    "read_labels",
    "read_task_settings",
    "save_model",
]
