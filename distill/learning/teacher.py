"""Teachers: models that a student learns from, with their tokenizer and cached outputs."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable

import keras

from distill.learning.ensemble import Ensemble, teacher_shares
from distill.learning.teacher_folder import check_stored_head
from distill.learning.teacher_outputs import StackedOutputs, compute_teacher_outputs
from distill.learning.terms import check_terms, read_tensor
from tfnlp.checkpoints import load_model, read_head, read_labels, unnamed_labels
from tfnlp.models import MASKED_LMS, check_vocabulary, num_classes, token_axes
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.text import load_tokenizer
from tfnlp.text.tokenizers.tokenizer import Tokenizer
from tfnlp.training.experiments.finetuning import predict_splits, score_splits
from tfnlp.training.run.fingerprints import model_fingerprint
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
        map_shards: as in `compute_teacher_outputs`, for the cache.
        unpruned: the `Teacher` that was pruned to the student's tokens, to report its scores; None
            if this one was not pruned.

    Raises:
        InputError: if the weights do not fit the models.
    """

    models: list[keras.Model]
    tokenizer: Tokenizer
    task: object | None = None
    weights: tuple | None = None
    cache_dir: str | None = None
    map_shards: Callable | None = None
    unpruned: "Teacher | None" = None

    def __post_init__(self):
        self.shares = teacher_shares(self.weights, len(self.models))

    @functools.cached_property
    def model(self):
        """The only model, or an `Ensemble` that is called like one."""
        if len(self.models) == 1:
            return self.models[0]
        return Ensemble(self.models, self.task, self.shares)

    def has_tokens_of(self, tokenizer):
        """Return whether another tokenizer is the same."""
        same = self.tokenizer is tokenizer
        return same or self.tokenizer.to_json() == tokenizer.to_json()

    def terms(self, terms):
        """Return terms that compare the student with this teacher: of several, with their mean."""
        return terms if len(self.models) == 1 else [self.model.of_mean(term) for term in terms]

    def check(self):
        """Raise an InputError unless the models fit their tokenizer and task."""
        for model in self.models:
            check_vocabulary(self.tokenizer, model)
            if self.task is not None:
                check_model("The teacher", model, self.task)
        if self.unpruned is not None:
            self.unpruned.check()

    def check_student(self, student, terms, same_tokens):
        """Raise an InputError unless a student and its terms fit this teacher.

        Args:
            student: a model.
            terms: a list of `Term`.
            same_tokens: whether both read the same tokens of each text.
        """
        check_terms(self.terms(terms), self.model, student)
        if same_tokens:
            return
        for term in terms:
            output, model = term.teacher[0], self.models[0]
            if token_axes(model, output, read_tensor(model, term.teacher, "teacher")):
                raise InputError(
                    f"The term {term.name!r} compares {output} by token, but teacher and student "
                    "read different tokens; use terms of whole texts."
                )

    def outputs(self, batches, terms):
        """Compute once what terms read of batches, which the teacher's tokenizer encoded.

        Returns:
            `TeacherOutputs`, see `compute_teacher_outputs`, or `StackedOutputs` of several models,
            each cached in a folder of its own.
        """
        reads = {term.teacher for term in terms}
        if len(self.models) == 1:
            return compute_teacher_outputs(
                self.models[0], batches, reads, self.cache_dir, self.map_shards
            )
        parts = []
        for model in self.models:
            folder = self.cache_dir
            if folder is not None:
                folder = pathlib.Path(folder) / model_fingerprint(model)[:16]
            parts.append(compute_teacher_outputs(model, batches, reads, folder, self.map_shards))
        return StackedOutputs(parts)

    def score(self, splits, batches):
        """Return the figures of the model or of the ensemble, with its parameters."""
        model = self.model
        if len(self.models) > 1:
            model = Ensemble(self.models, self.task, self.shares, pooled=True)
        outputs = predict_splits(model, self.task, batches)
        figures = {"parameters": count_parameters(model)}
        return figures | score_splits(self.task, splits, batches, outputs)

    def fingerprints(self):
        """Return the fingerprints of a run by this teacher, as `fit` takes them."""
        made_from = {"teacher_dir": model_fingerprint(self.model)}
        if self.cache_dir is not None:
            made_from["cache_dir"] = "on disk"  # states on disk are rounded to float16
        return made_from


def check_model(name, model, task):
    """Raise an InputError unless a model, such as "The student", has a task's head and classes."""
    head, classes = task.kind.head, num_classes(model)
    if (model.head, classes) != (head, task.num_classes):
        raise InputError(
            f"{name} has the head {model.head!r} and {_counted(classes)}, but the task needs "
            f"{head!r} and {_counted(task.num_classes)}; give a model that was fine-tuned "
            "for it."
        )


def _counted(classes):
    return {None: "no classes", 1: "a number"}.get(classes, f"{classes} classes")


def load_shared_tokenizer(folders):
    """Load the tokenizer of teachers' folders, which must all have the same one.

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


def load_teacher(folder, task, **options):
    """Load a model that was fine-tuned for a task.

    Args:
        folder: of the model, such as the `best` of a run.
        task: see `tfnlp.tasks`.
        options: as `load_model` takes them: `hidden_states`, `attention_scores` and
            `attention_projections`, whether to output these too for the student to learn from;
            `vectors`, of an encoder without a head; and `dtype`, such as "bfloat16", which takes
            half the memory. Losses convert outputs to
            float32. A student that starts from its weights needs a teacher in float32.

    Returns:
        A `TextModel`.

    Raises:
        InputError: as `load_model`, and if the model has another head or other labels than the
            task.
    """
    if "vectors" not in options or read_head(folder):  # with them an encoder has the head
        check_stored_head(folder, task.kind.head)
    teacher = load_model(folder, task.kind.head, **options)
    check_model(folder, teacher, task)
    labels = read_labels(folder)
    # Default labels of a model whose classes have no names.
    unnamed = unnamed_labels(task.num_classes or 0)
    if task.label_names and labels not in (None, unnamed, list(task.label_names)):
        raise InputError(
            f"The labels of {folder} are {', '.join(labels)}, but the task's are "
            f"{', '.join(task.label_names)}; give the task the teacher's, in their order."
        )
    return teacher


def load_general_teacher(folder, predicts, **options):
    """Load a pretrained model as a teacher of a general distillation.

    Args:
        folder: of a masked language model, or of an encoder.
        predicts: whether the student learns its predictions.
        options: outputs, and `dtype`, as `load_model` takes them.

    Returns:
        A `TextModel`, with the head "masked_lm" if the folder has it.

    Raises:
        InputError: as `load_model`, and if `predicts` is set but the folder has no such head.
    """
    head = "masked_lm" if read_head(folder) in MASKED_LMS else None
    if predicts and head is None:
        raise InputError(
            f"{folder} holds no masked language model, so it gives no soft labels of masked "
            "tokens; give one that predicts tokens, or a method of states and attention."
        )
    return load_model(folder, head, **options)
