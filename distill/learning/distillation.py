"""Distillation of a teacher into a student for a task, from examples to a finished run."""

import dataclasses
import warnings

from absl import logging

from distill.learning.distiller import Distiller
from distill.learning.methods import soft_label_terms
from distill.learning.teacher import check_model
from distill.learning.terms import check_terms
from tfnlp.checkpoints import check_saves, load_model
from tfnlp.models import check_lengths, check_vocabulary
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
    start_head,
)
from tfnlp.training.fingerprints import content_fingerprint
from tfnlp.training.optimizer import compile_model
from tfnlp.training.resumable_fit import fit
from tfnlp.training.run_report import write_report
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class TaskData:
    """Examples of a task for a student, and how to encode them.

    Args:
        tokenizer: the student's.
        train, dev, test: examples of the task; the best epoch has the highest `task.monitor` on
            `dev`; `test` may be None.
        max_length: the longest input in tokens.
    """

    tokenizer: Tokenizer
    train: object
    dev: object
    test: object = None
    max_length: int = 128

    @property
    def splits(self):
        """Examples by the name of their split."""
        return {"train": self.train, "dev": self.dev, "test": self.test}

    def encode(self, task, tokenizer, config):
        """Return the `LengthBatches` of each split, see `encode_splits`."""
        return encode_splits(task, tokenizer, self.splits, config, self.max_length)


@dataclasses.dataclass(frozen=True)
class Phase:
    """Part of a distillation: a loss, and the epochs to train on it.

    Args:
        terms: a list of `Term`, such as `make_terms` returns.
        epochs: of a phase before the last; the last has those of the `TrainingConfig`.
        hard_label_weight: weight of the task's own loss.
    """

    terms: list
    epochs: int | None = None
    hard_label_weight: float = 0.5


def split_phases(terms, task, intermediate_epochs, hard_label_weight=0.5):
    """Return the two phases of TinyBERT: the teacher's layers first, then its predictions.

    Jiao et al. 2020, 'TinyBERT', section 4.3.

    Args:
        terms: a list of `Term`. Those of the task's outputs are left to the second phase, all
            others (embeddings, states, attention) to the first.
        task: see `tfnlp.tasks`.
        intermediate_epochs: epochs of the first phase; 0 for one phase of all terms.
        hard_label_weight: weight of the task's own loss in the second phase.

    Raises:
        InputError: if the first phase would have no terms.
    """
    if not intermediate_epochs:
        return [Phase(terms, hard_label_weight=hard_label_weight)]
    predictions = [term for term in terms if term.teacher[0] in task.outputs]
    layers = [term for term in terms if term.teacher[0] not in task.outputs]
    if not layers:
        raise InputError(
            f"intermediate_epochs={intermediate_epochs} has no effect without terms of "
            "embeddings, states or attention; give some, or leave it out."
        )
    first = Phase(layers, intermediate_epochs, hard_label_weight=0.0)
    return [first, Phase(predictions, hard_label_weight=hard_label_weight)]


def distill(teacher, student, data, config, run, phases=None, compress=None):
    """Train a student for its teacher's task, from labels and from the teacher, and report both.

    As in `tfnlp.training.finetune`, the best epoch is kept, and a killed run resumes from its
    folder and ends with the same weights.

    Args:
        teacher: a `Teacher` of a task.
        student: with the task's head, such as from `make_student`; built, like the teacher and the
            terms, in the scope of the strategy to train under.
        data: a `TaskData`.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to.
        phases: a list of `Phase`; one of soft labels beside the task's own loss where None.
        compress: as in `tfnlp.training.finetune`, for the student.

    Returns:
        A dict of the figures of the student, and prefixed with `teacher_` of the teacher. If there
        is an unpruned teacher, `teacher_` is for it, and `pruned_teacher_` for the pruned one.
        `share_of_teacher` is the student's `task.monitor` on dev over the teacher's.

    Raises:
        InputError: before any training, if a teacher, the student or a tokenizer does not fit, a
            phase has nothing to learn, or a term compares tokens of different tokenizers.
    """
    task = teacher.task
    phases = phases or [Phase(soft_label_terms(task, weight=0.5))]
    phases = [dataclasses.replace(phase, terms=teacher.weigh(phase.terms)) for phase in phases]
    _check(teacher, student, data, phases)
    live = None if teacher.runs_once(data.tokenizer) else teacher.model
    distillers = [
        Distiller(student, task, phase.terms, live, phase.hard_label_weight) for phase in phases
    ]
    start_head(task, student, data.train)

    batches = data.encode(task, data.tokenizer, config)
    made_from = {"train": content_fingerprint([data.train, task.label_names])}
    made_from |= teacher.fingerprints(student)
    teacher_batches = batches
    if not teacher.has_tokens_of(data.tokenizer):
        teacher_batches = data.encode(task, teacher.tokenizer, config)
        inputs = teacher_batches["train"].inputs_fingerprint()
        made_from["the teacher's encoded batches"] = inputs
    check_lengths(batches["train"], student)
    check_lengths(teacher_batches["train"], teacher.model)
    if live is None:
        terms = [term for phase in phases for term in phase.terms]
        batches["train"].targets = teacher.outputs(teacher_batches["train"], terms)

    _fit_first_phases(phases, distillers, batches["train"], config, run, made_from=made_from)
    distiller = distillers[-1]
    if compress is not None:
        check_compresses(config)
        distiller.compressor = compress(student, compressed_steps(config, run, batches["train"]))
    compile_model(config, distiller, len(batches["train"]))
    fit_best(
        distiller,
        student,
        task,
        data.tokenizer,
        data.splits,
        batches=batches,
        config=config,
        run=run,
        max_length=data.max_length,
        made_from=made_from,
    )
    best = load_model(run.best, task.head, task.num_classes)
    figures = best_figures(distiller, best, task, data.splits, batches, run=run)
    figures |= _teacher_figures(teacher, data, teacher_batches, config)
    score = f"dev_{task.monitor}"
    if figures[f"teacher_{score}"] > 0:
        figures["share_of_teacher"] = figures[score] / figures[f"teacher_{score}"]
    counts = count_examples(data.splits)
    write_report(run, figures, task.label_names, task.monitor, examples=counts)
    return figures


def _check(teacher, student, data, phases):
    """Raise an InputError unless teacher, student, terms and examples fit each other."""
    terms = [term for phase in phases for term in phase.terms]
    if any(phase.epochs is None for phase in phases[:-1]):
        raise InputError("A phase before the last has no epochs; give Phase(terms, epochs).")
    check_vocabulary(data.tokenizer, student)
    if teacher.unpruned is not None:
        teacher.unpruned.check()
    teacher.check()
    check_model("student", student, teacher.task)
    teacher.check_terms(terms, data.tokenizer)
    check_terms(terms, teacher.model, student)
    if any(phase.hard_label_weight for phase in phases):
        check_varied(teacher.task, data.train)
    check_saves(student)


def _fit_first_phases(phases, distillers, batches, config, run, made_from):
    """Train all phases but the last, each in a subfolder of the next one's run.

    The final state of a phase has the student's weights, from which the next phase starts.
    """
    *phases, _ = phases
    folders = [run]
    for _ in phases:
        folders.append(folders[-1].intermediate())
        folders[-2].start()
    for phase, distiller, folder in zip(phases, distillers[:-1], folders[:0:-1], strict=True):
        losses = ", ".join(dict.fromkeys(term.name for term in phase.terms))
        logging.info("Training %d epochs on %s first.", phase.epochs, losses)
        phase_config = dataclasses.replace(config, epochs=phase.epochs, patience=0)
        compile_model(phase_config, distiller, len(batches))
        with warnings.catch_warnings():
            # The head gets no gradients from layers; a later phase trains it.
            warnings.filterwarnings("ignore", "Gradients do not exist for variables")
            fit(distiller, batches, phase_config, folder, lambda: None, fingerprints=made_from)
        plot_curves(folder.metrics(), folder.path / "curves.png", metric=None)


def _teacher_figures(teacher, data, batches, config):
    """Return the figures of a teacher, and of the one that it was pruned from."""
    scores = teacher.score(data.splits, batches)
    unpruned = teacher.unpruned
    if unpruned is None:
        return _prefixed("teacher", scores)
    scored = dataclasses.replace(data, train=None)
    batches = scored.encode(teacher.task, unpruned.tokenizer, config)
    unpruned_scores = unpruned.score(data.splits, batches)
    return _prefixed("pruned_teacher", scores) | _prefixed("teacher", unpruned_scores)


def _prefixed(prefix, figures):
    return {f"{prefix}_{name}": value for name, value in figures.items()}
