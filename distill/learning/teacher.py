"""Teachers: models that a student learns from, with their tokenizer and cached outputs."""

import dataclasses
import functools
import pathlib

import keras

from distill.learning.ensemble import Ensemble, teacher_shares
from distill.learning.teacher_outputs import StackedOutputs, compute_teacher_outputs
from distill.learning.terms import read_tensor
from tfnlp.checkpoints import load_model, read_head, read_labels
from tfnlp.models import check_vocabulary, token_axes
from tfnlp.text import load_tokenizer
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.training.finetuning import score_splits
from tfnlp.training.fingerprints import content_fingerprint, model_fingerprint
from tfnlp.utils.errors import InputError


@dataclasses.dataclass
class Teacher:
    """Model that a student learns from, or an ensemble of several.

    Args:
        models: a list of models of one tokenizer, such as `load_teacher` returns. The soft labels
            of several are their mean, see `Ensemble`.
        tokenizer: theirs. Of a student with another, only outputs of whole texts are learned, and
            they are computed once.
        task: that they were fine-tuned for, see `tfnlp.tasks`; None for pretrained models.
        weights: of several models in their mean, numbers of 0 or more; all alike where None.
        cache_dir: folder to compute the outputs into once; where None the models run on each
            batch.
        unpruned: the `Teacher` that was pruned to the student's tokens, to report its scores; None
            if this one was not pruned.

    Raises:
        InputError: if there is no model, or the weights do not fit the models.
    """

    models: list[keras.Model]
    tokenizer: Tokenizer
    task: object | None = None
    weights: tuple | None = None
    cache_dir: str | None = None
    unpruned: "Teacher | None" = None

    def __post_init__(self):
        if not self.models:
            raise InputError("There is no teacher; give one, or several in a list.")
        self.shares = teacher_shares(self.weights, len(self.models))

    @functools.cached_property
    def model(self):
        """The only model, or an `Ensemble` that is called like one."""
        return self.models[0] if len(self.models) == 1 else Ensemble(self.models, self.task)

    def has_tokens_of(self, tokenizer):
        """Return whether another tokenizer is the same."""
        same = self.tokenizer is tokenizer
        return same or self.tokenizer.to_json() == tokenizer.to_json()

    def weigh(self, terms):
        """Return terms whose distances weight several models by `weights`."""
        if self.shares is None:
            return terms

        def weigh(term):
            distance = functools.partial(term.distance, teacher_weights=self.shares)
            return dataclasses.replace(term, distance=distance)

        return [weigh(term) for term in terms]

    def runs_once(self, tokenizer):
        """Return whether outputs are computed once, for a student with this tokenizer."""
        return self.cache_dir is not None or not self.has_tokens_of(tokenizer)

    def check(self):
        """Raise an InputError unless the models fit their tokenizer and task."""
        for model in self.models:
            check_vocabulary(self.tokenizer, model)
            check_model("teacher", model, self.task)

    def check_terms(self, terms, tokenizer):
        """Check that several models, or tokenizers, have the tensors of terms in common.

        Raises:
            InputError: if a term reads layers of several models, which cannot be averaged, or
                tokens, which the student's tokenizer splits differently.
        """
        same_tokens, model = self.has_tokens_of(tokenizer), self.models[0]
        for term in terms:
            output = term.teacher[0]
            if len(self.models) > 1 and output not in self.task.outputs:
                raise InputError(
                    f"The term {term.name!r} reads {output}, but of several teachers only their "
                    f"{' and '.join(self.task.outputs)} are learned; leave the term out, or give "
                    "one teacher."
                )
            if same_tokens:
                continue
            if token_axes(model, output, read_tensor(model, term.teacher, "teacher")):
                raise InputError(
                    f"The term {term.name!r} compares {output} by token, but teacher and student "
                    "have different tokenizers; use terms of whole texts."
                )

    def outputs(self, batches, terms):
        """Compute once what terms read, for all examples; see `compute_teacher_outputs`.

        Args:
            batches: `LengthBatches`, encoded by the teacher's tokenizer.
            terms: a list of `Term`.

        Returns:
            `TeacherOutputs`, or `StackedOutputs` of several models, each cached in a folder of its
            own.
        """
        reads = {term.teacher for term in terms}
        if len(self.models) == 1:
            return compute_teacher_outputs(self.models[0], batches, reads, self.cache_dir)
        folders = [
            self.cache_dir and pathlib.Path(self.cache_dir) / model_fingerprint(model)[:16]
            for model in self.models
        ]
        pairs = zip(self.models, folders, strict=True)
        return StackedOutputs([compute_teacher_outputs(m, batches, reads, f) for m, f in pairs])

    def score(self, splits, batches):
        """Return the figures of the model or of the ensemble, see `score_splits`."""
        model = self.model
        if len(self.models) > 1:
            model = Ensemble(self.models, self.task, pooled=True, weights=self.shares)
        return score_splits(model, self.task, splits, batches)

    def fingerprints(self, student):
        """Return the fingerprints of a run by this teacher, as `fit` takes them."""
        made_from = {
            "teacher_dir": model_fingerprint(self.model),
            "model": content_fingerprint(student.text_config),
        }
        if self.cache_dir is not None:
            made_from["cache_dir"] = "on disk"  # states on disk are rounded to float16
        return made_from


def check_model(name, model, task):
    """Raise an InputError unless a "teacher" or "student" has the head and classes of a task."""
    if model.head != task.head:
        raise InputError(
            f"The {name} has the head {model.head!r}, but the task needs {task.head!r}; give a "
            "model with that head."
        )
    classes = model.output["logits"].shape[-1] if task.num_classes else None
    if classes != task.num_classes:
        raise InputError(
            f"The {name} has {classes} classes, but the task {task.num_classes}; give a model of "
            "as many."
        )


def read_teacher_labels(folder, head):
    """Return the class names of a teacher's folder in order of their ids, or None if it has none.

    Args:
        folder: of the model.
        head: one of `tfnlp.models.HEADS` that classifies.

    Raises:
        InputError: if its model has another head, or is a regression.
    """
    _check_stored_head(folder, head)
    labels = read_labels(folder)
    if labels and len(labels) == 1:
        raise InputError(
            f"{folder} holds a {head} that gives a number, not one of several classes; give the "
            "folder of a teacher that was fine-tuned for the task."
        )
    return labels


def _check_stored_head(folder, head):
    stored = read_head(folder)
    if stored != head:
        held = f"a model with the head {stored!r}" if stored else "an encoder without a head"
        raise InputError(
            f"{folder} holds {held}, but the task needs the head {head!r}; give the folder of a "
            "teacher that was fine-tuned for the task."
        )


def load_shared_tokenizer(folders):
    """Load the tokenizer of a task's teachers, which must all have the same one.

    Args:
        folders: of the teachers.

    Raises:
        InputError: as `load_tokenizer`, and if one differs from the first.
    """
    first, *others = folders
    tokenizer = load_tokenizer(first)
    for folder in others:
        if load_tokenizer(folder).to_json() != tokenizer.to_json():
            raise InputError(
                f"{folder} has another tokenizer than {first}, but several teachers read the same "
                "tokens; give teachers of one tokenizer."
            )
    return tokenizer


def load_teacher(
    folder,
    task,
    hidden_states=False,
    attention_scores=False,
    attention_projections=False,
    dtype=None,
):
    """Load a model that was fine-tuned for a task.

    Args:
        folder: of the model, such as the `best` of a run.
        task: see `tfnlp.tasks`.
        hidden_states, attention_scores, attention_projections: whether to output these too, for
            the student to learn from.
        dtype: a Keras dtype policy for the teacher, such as "bfloat16", which takes half the
            memory; the global one where None. Losses convert its outputs to float32. A student
            that starts from its weights needs a teacher in float32.

    Returns:
        A `TextModel`.

    Raises:
        InputError: as `load_model`, and if the model has another head or other labels than the
            task.
    """
    _check_stored_head(folder, task.head)
    teacher = load_model(
        folder,
        task.head,
        hidden_states=hidden_states,
        attention_scores=attention_scores,
        attention_projections=attention_projections,
        dtype=dtype,
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
    # Default labels of a model whose classes have no names.
    unnamed = [f"LABEL_{i}" for i in range(classes)]
    if classes > 1 and labels not in (None, unnamed, list(task.label_names)):
        raise InputError(
            f"The labels of {folder} are {', '.join(labels)}, but the task's are "
            f"{', '.join(task.label_names)}; give the task the teacher's, in their order."
        )
    return teacher


def _counted(classes):
    return "a number" if classes == 1 else f"{classes} classes"
