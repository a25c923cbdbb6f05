"""Distillation of a teacher into a student for a task, from examples to a finished run."""

import dataclasses
import warnings

from absl import logging

from distill.learning.distiller import Distiller
from distill.learning.methods import soft_label_terms
from distill.learning.teacher import (
    SeveralTeachers,
    join_teachers,
    teacher_shares,
    weighted_terms,
)
from distill.learning.teacher_outputs import compute_teacher_outputs
from distill.learning.terms import check_terms, read_tensor
from tfnlp.checkpoints import check_saves, load_model
from tfnlp.models import check_lengths, check_vocabulary, token_axes
from tfnlp.plots import plot_curves
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.training.finetuning import (
    best_figures,
    check_compresses,
    check_varied,
    compressed_steps,
    count_examples,
    encode_splits,
    fit_best,
    score_splits,
    start_head,
)
from tfnlp.training.fingerprints import content_fingerprint, model_fingerprint
from tfnlp.training.resumable_fit import fit
from tfnlp.training.run_report import write_report
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class Distillation:
    """Settings of distillation, beside the student's training.

    Args:
        terms: a list of `Term`, such as a function of `METHODS` returns; soft labels where None.
        hard_label_weight: of the task's own loss.
        teacher_weights: weights of several teachers in their mean, numbers of 0 or more; all alike
            where None.
        cache_dir: folder to compute the teacher's outputs into once; where None it runs on each
            batch.
        intermediate_epochs: epochs of a first phase, on the terms that are not the task's outputs
            (embeddings, states, attention), as in TinyBERT; the second phase leaves these terms
            out. 0 for one phase of all terms.
        teacher_tokenizer: the teacher's, if it differs from the student's. Only outputs of whole
            texts can then be learned, and they are computed once; None if it is the same.
        unpruned: the original of a teacher that was pruned to the student's tokens: (the teacher
            or a list of several, their tokenizer); None if it was not pruned.
    """

    terms: list | None = None
    hard_label_weight: float = 0.5
    teacher_weights: tuple | None = None
    cache_dir: str | None = None
    intermediate_epochs: int = 0
    teacher_tokenizer: Tokenizer | None = None
    unpruned: tuple | None = None


def distill(
    task,
    teacher,
    student,
    tokenizer,
    train,
    dev,
    config,
    run,
    max_length,
    test=None,
    distillation=None,
    compress=None,
):
    """Train a student for a task from its labels and its teacher, and report both.

    As in `tfnlp.training.finetune`, the best epoch is kept, and a killed run resumes from its
    folder and ends with the same weights.

    Args:
        task: see `tfnlp.tasks`.
        teacher: fine-tuned for the task, from `load_teacher`; or a list of several with the same
            tokenizer, see `read_teachers_tokenizer`.
        student: with the task's head, such as from `make_student`; built, like the teacher and the
            terms, in the scope of the strategy to train under.
        tokenizer: the student's.
        train, dev, test: examples of the task; the best epoch has the highest `task.monitor` on
            `dev`; `test` may be None.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to.
        max_length: the longest input in tokens.
        distillation: a `Distillation`; soft labels beside the task's own loss where None.
        compress: as in `tfnlp.training.finetune`, for the student.

    Returns:
        A dict of the figures of the student, and prefixed with `teacher_` of the teacher. If there
        is an unpruned teacher, `teacher_` is for it, and `pruned_teacher_` for the pruned one.
        `share_of_teacher` is the student's `task.monitor` on dev over the teacher's.

    Raises:
        InputError: before any training, if a teacher, the student or a tokenizer does not fit, one
            of two phases has nothing to learn, or a term compares tokens of different tokenizers.
    """
    what = distillation or Distillation()
    terms, cache_dir, unpruned = what.terms, what.cache_dir, what.unpruned
    teacher_tokenizer, intermediate_epochs = what.teacher_tokenizer, what.intermediate_epochs
    if terms is None:
        terms = soft_label_terms(task, weight=0.5)
    teachers = _as_list(teacher)
    shares = teacher_shares(what.teacher_weights, len(teachers))
    check_vocabulary(tokenizer, student)
    for model in _as_list(unpruned[0]) if unpruned else ():
        check_vocabulary(unpruned[1], model)
        _check_models(task, model, student)
    for model in teachers:
        check_vocabulary(teacher_tokenizer or tokenizer, model)
        _check_models(task, model, student)
    teacher = join_teachers(teachers, task, terms)
    terms = weighted_terms(terms, shares)
    check_terms(terms, teacher, student)
    if teacher_tokenizer is not None:
        _check_of_texts(terms, teachers[0])
    if what.hard_label_weight:
        check_varied(task, train)
    check_saves(student)
    start_head(task, student, train)
    live = teacher if cache_dir is None and teacher_tokenizer is None else None
    before = [term for term in terms if term.teacher[0] not in task.outputs]
    if intermediate_epochs:
        if not before:
            raise InputError(
                f"intermediate_epochs={intermediate_epochs} has no effect without terms of "
                "embeddings, states or attention; give some, or leave it out."
            )
        intermediate = Distiller(student, task, before, live, hard_label_weight=0.0)
        terms = [term for term in terms if term not in before]
    distiller = Distiller(student, task, terms, live, what.hard_label_weight)
    splits = {"train": train, "dev": dev, "test": test}
    batches = encode_splits(task, tokenizer, splits, config, max_length)
    read = batches
    if teacher_tokenizer is not None:
        read = encode_splits(task, teacher_tokenizer, splits, config, max_length)
    check_lengths(batches["train"], student)
    check_lengths(read["train"], teacher)
    if live is None:
        reads = [term.teacher for term in [*before, *terms]]
        outputs = compute_teacher_outputs(teacher, read["train"], reads, cache_dir)
        batches["train"].targets = outputs
    made_from = {
        "teacher_dir": model_fingerprint(teacher),
        "model": content_fingerprint(student.text_config),
    }
    if cache_dir is not None:
        made_from["cache_dir"] = "on disk"  # states on disk are rounded to float16
    if teacher_tokenizer is not None:
        made_from["the teacher's encoded batches"] = read["train"].inputs_fingerprint()
    if intermediate_epochs:
        epochs = {"epochs": intermediate_epochs, "patience": 0}
        first = dataclasses.replace(config, **epochs)
        _fit_intermediate(intermediate, task, splits, batches["train"], first, run, made_from)
    if compress is not None:
        check_compresses(config)
        distiller.compressor = compress(student, compressed_steps(config, run, batches["train"]))
    config.compile(distiller, len(batches["train"]))
    fit_best(
        distiller,
        student,
        task,
        tokenizer,
        splits,
        batches,
        config,
        run,
        max_length,
        made_from,
    )
    best = load_model(run.best, task.head, task.num_classes)
    figures = best_figures(distiller, best, task, splits, batches, run)
    answers = _score_teachers(teachers, task, splits, read, shares)
    if unpruned is not None:
        figures |= {f"pruned_teacher_{key}": value for key, value in answers.items()}
        scored = {"dev": dev, "test": test}
        read = encode_splits(task, unpruned[1], scored, config, max_length)
        answers = _score_teachers(_as_list(unpruned[0]), task, splits, read, shares)
    figures |= {f"teacher_{key}": value for key, value in answers.items()}
    score = f"dev_{task.monitor}"
    if answers[score] > 0:
        figures["share_of_teacher"] = figures[score] / answers[score]
    counts = count_examples(splits)
    write_report(run, figures, task.label_names, task.monitor, examples=counts)
    return figures


def _as_list(teacher):
    return list(teacher) if isinstance(teacher, list | tuple) else [teacher]


def _score_teachers(teachers, task, splits, batches, shares):
    """Return the figures of a teacher or an ensemble."""
    answering = teachers[0]
    if len(teachers) > 1:
        answering = SeveralTeachers(teachers, task, pooled=True, weights=shares)
    return score_splits(answering, task, splits, batches)


def _check_of_texts(terms, teacher):
    """Raise an InputError if a term compares tokens, which two tokenizers split differently."""
    for term in terms:
        output, _ = term.teacher
        if token_axes(teacher, output, read_tensor(teacher, term.teacher, "teacher")):
            raise InputError(
                f"The term {term.name!r} compares {output}, which are of tokens, but teacher and "
                "student have different tokenizers; leave it out and learn what the teacher says "
                "of whole texts."
            )


def _fit_intermediate(distiller, task, splits, batches, config, run, made_from):
    """Train the first of two phases, in a subfolder of the run.

    Its final state has the student's weights, from which the second phase starts.
    """
    folder = run.intermediate()
    run.start()
    logging.info("%d epochs on embeddings, states and attention come first.", config.epochs)
    config.compile(distiller, len(batches))
    train = {"train": content_fingerprint([splits["train"], task.label_names])}
    with warnings.catch_warnings():
        # The head gets no gradients here; the second phase trains it.
        warnings.filterwarnings("ignore", "Gradients do not exist for variables")
        fit(distiller, batches, config, folder, lambda: None, fingerprints=train | made_from)
    plot_curves(folder.metrics(), folder.path / "curves.png", metric=None)


def _check_models(task, teacher, student):
    """Raise an InputError unless both models have the task's head and classes."""
    for name, model in (("teacher", teacher), ("student", student)):
        if model.head != task.head:
            raise InputError(
                f"The {name} has the head {model.head!r}, but the task needs {task.head!r}; give "
                "a model with that head."
            )
        classes = model.output["logits"].shape[-1] if task.num_classes else None
        if classes != task.num_classes:
            raise InputError(
                f"The {name} has {classes} classes, but the task {task.num_classes}; give a model "
                "of as many."
            )
