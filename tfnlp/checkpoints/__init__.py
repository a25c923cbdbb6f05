"""Loading and saving of Hugging Face and keras-hub checkpoint folders."""

from tfnlp.checkpoints.folder import (
    check_saves,
    load_model,
    read_config,
    read_head,
    read_labels,
    read_pooler,
    read_task_settings,
    save_model,
)

__all__ = [
    "check_saves",
    "load_model",
    "read_config",
    "read_head",
    "read_labels",
    "read_pooler",
    "read_task_settings",
    "save_model",
]
