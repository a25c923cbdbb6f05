"""A fine-tuned teacher from its folder."""

from tfnlp.checkpoints import load_model, read_head, read_labels
from tfnlp.errors import InputError


def read_teacher_labels(folder, head):
    """The class names of a teacher's folder in order of their ids, or None where it has none.

    Args:
        folder: of the model.
        head: one of `tfnlp.models.HEADS` that tells classes apart.

    Raises:
        InputError: if its model has another head, or gives a number.
    """
    _check_head(folder, head)
    labels = read_labels(folder)
    if labels and len(labels) == 1:
        raise InputError(
            f"{folder} holds a {head} that gives a number, not one of several classes; give the "
            "folder of a teacher that was fine-tuned for the task."
        )
    return labels


def _check_head(folder, head):
    stored = read_head(folder)
    if stored != head:
        held = f"a model with the head {stored!r}" if stored else "an encoder without a head"
        raise InputError(
            f"{folder} holds {held}, but the task needs the head {head!r}; give the folder of a "
            "teacher that was fine-tuned for the task."
        )


def load_teacher(
    folder, task, hidden_states=False, attention_scores=False, attention_projections=False
):
    """Loads a model that was fine-tuned for a task.

    Args:
        folder: of the model, such as the `best` of a run.
        task: see `tfnlp.tasks`.
        hidden_states, attention_scores, attention_projections: whether the student learns from
            them too.

    Returns:
        A `TextModel`.

    Raises:
        InputError: as `load_model`, and if the model has another head or other labels than the
            task.
    """
    _check_head(folder, task.head)
    teacher = load_model(
        folder,
        task.head,
        hidden_states=hidden_states,
        attention_scores=attention_scores,
        attention_projections=attention_projections,
    )
    if task.num_classes is None:
        return teacher
    classes = teacher.output["logits"].shape[-1]
    if classes != task.num_classes:
        raise InputError(
            f"{folder} gives {_counted(classes)}, but the task has "
            f"{_counted(task.num_classes)}; give a teacher that was fine-tuned for the task."
        )
    labels = read_labels(folder)
    # What a model says whose classes were given no names.
    unnamed = [f"LABEL_{i}" for i in range(classes)]
    if classes > 1 and labels not in (None, unnamed, list(task.label_names)):
        raise InputError(
            f"The labels of {folder} are {', '.join(labels)}, but the task's are "
            f"{', '.join(task.label_names)}; give the task the teacher's, in their order."
        )
    return teacher


def _counted(classes):
    return "a number" if classes == 1 else f"{classes} classes"
