"""Labels, tokenizers and heads of teachers' folders, without TensorFlow."""

from tfnlp.checkpoints import read_head, read_labels, read_task_settings
from tfnlp.tasks.kinds import SCORER, kind_of_head, named_head
from tfnlp.utils.errors import InputError


def read_teacher_labels(folder, head):
    """Return the class names of a teacher's folder in order of their ids.

    None if it has none, or is a regression, which `load_teacher` refuses.

    Raises:
        InputError: if its model has another head than `head`.
    """
    check_stored_head(folder, head)
    labels = read_labels(folder)
    is_number = labels and kind_of_head(head, len(labels)) == SCORER
    return None if is_number else labels


def check_stored_head(folder, head):
    """Raise an InputError if the model of a teacher's folder has another head."""
    stored = read_head(folder)
    if stored != head:
        raise InputError(
            f"{folder} holds {named_head(stored)}, but the task needs the head {head!r}; give the "
            "folder of a teacher that was fine-tuned for the task."
        )


def check_teacher_reads(folder, examples):
    """Raise an InputError if a teacher's folder reads pairs of texts, and examples have none."""
    if read_task_settings(folder).get("pairs") and not examples.pairs:
        raise InputError(
            f"teacher_dir={folder} reads pairs of texts; name the column of the second ones by "
            "`pair_column`."
        )
