"""Distilling a teacher into a student for a task, from examples to a finished run."""

from distill.learning.distiller import Distiller
from distill.learning.losses import check_terms
from distill.learning.methods import soft_label_terms
from distill.learning.teacher import SeveralTeachers, join_teachers
from distill.learning.teacher_outputs import check_of_texts, compute_teacher_outputs
from tfnlp.checkpoints import check_saves, load_model
from tfnlp.errors import InputError
from tfnlp.models import check_lengths, check_vocabulary
from tfnlp.training.finetune import check_varied, encode_splits, fit_best, score_splits
from tfnlp.training.fingerprint import content_fingerprint, model_fingerprint
from tfnlp.training.report import write_report


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
    terms=None,
    hard_label_weight=0.5,
    cache_dir=None,
    teacher_tokenizer=None,
):
    """Trains a student for a task from its labels and its teacher, and reports both.

    As `tfnlp.training.finetune`: the best epoch is kept, and a killed run goes on from its folder
    and ends with the same weights.

    Args:
        task: see `tfnlp.tasks`.
        teacher: fine-tuned for the task, from `load_teacher`; or a list of several, whose
            answers count alike.
        student: with the task's head, such as from `make_student`; made, as the teacher and the
            terms, in the scope of the strategy to train under.
        tokenizer: of both; or of the student, where there is a `teacher_tokenizer`.
        train, dev, test: examples of the task; the best epoch is the one with the most of
            `task.monitor` on `dev`; `test` may be None.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to.
        max_length: the longest input in tokens.
        terms: a list of `Term`, such as a function of `METHODS` gives it; soft labels where None.
        hard_label_weight: of the task's own loss.
        cache_dir: folder to compute the teacher's outputs into once; where None it runs on each
            batch.
        teacher_tokenizer: of the teacher, where its tokens are others than the student's: it then
            runs once, and its answers on whole texts are learned.

    Returns:
        A dict of the figures of the student, and with `teacher_` before their names of the
        teacher; `kept` is the share of the teacher's `task.monitor` on dev.

    Raises:
        InputError: before any work, for a teacher, a student or a tokenizer that do not fit.
    """
    if terms is None:
        terms = soft_label_terms(task, weight=0.5)
    teachers = list(teacher) if isinstance(teacher, list | tuple) else [teacher]
    check_vocabulary(tokenizer, student)
    for model in teachers:
        check_vocabulary(teacher_tokenizer or tokenizer, model)
        _check_models(task, model, student)
    teacher = join_teachers(teachers, task, terms)
    check_terms(terms, teacher, student)
    if hard_label_weight:
        check_varied(task, train)
    check_saves(student)
    live = teacher if cache_dir is None and teacher_tokenizer is None else None
    distiller = Distiller(student, task, terms, live, hard_label_weight)
    splits = {"train": train, "dev": dev, "test": test}
    batches = encode_splits(task, tokenizer, splits, config, max_length)
    of_teacher = batches
    if teacher_tokenizer is not None:
        check_of_texts(terms, teachers[0])
        of_teacher = encode_splits(task, teacher_tokenizer, splits, config, max_length)
    check_lengths(batches["train"], student)
    check_lengths(of_teacher["train"], teacher)
    if live is None:
        reads = [term.teacher for term in terms]
        outputs = compute_teacher_outputs(teacher, of_teacher["train"], reads, cache_dir)
        batches["train"].targets = outputs
    optimizer = config.optimizer(distiller, len(batches["train"]))
    distiller.compile(optimizer, jit_compile=False)
    made_from = {
        "teacher_dir": model_fingerprint(teacher),
        "model": content_fingerprint(student.text_config),
    }
    if cache_dir is not None:
        made_from["cache_dir"] = "on disk"  # where states are rounded to float16
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
        dev_loss=True,
    )
    best = load_model(run.best, task.head, task.num_classes)
    figures = score_splits(best, task, splits, batches)
    answering = SeveralTeachers(teachers, task, pooled=True) if teachers[1:] else teacher
    answers = score_splits(answering, task, splits, of_teacher)
    figures |= {f"teacher_{key}": value for key, value in answers.items()}
    score = f"dev_{task.monitor}"
    if answers[score] > 0:
        figures["kept"] = figures[score] / answers[score]
    write_report(run, figures, task.label_names, task.monitor)
    return figures


def _check_models(task, teacher, student):
    """Raises an InputError unless both models have the task's head and classes."""
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
