"""Distillation of a teacher into a student for a task, from examples to a finished run."""

import dataclasses
import warnings

from absl import logging

from distill.learning.distiller import Distiller
from distill.learning.methods import similarity_terms, soft_label_terms
from distill.learning.teacher import Teacher, check_model
from distill.learning.terms import read_by_terms
from tfnlp.checkpoints import check_saves
from tfnlp.models import check_lengths, check_vocabulary
from tfnlp.plots import plot_curves
from tfnlp.training.experiments.finetuning import (
    FineTuning,
    check_varied,
    encode_splits,
    warn_of_baseline,
)
from tfnlp.training.run.resumable_fit import fit, lower_is_better
from tfnlp.training.step.optimizer import compile_model
from tfnlp.utils.errors import InputError


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
    predictions = [term for term in terms if term.teacher[0] in task.kind.reads]
    layers = [term for term in terms if term.teacher[0] not in task.kind.reads]
    if not layers:
        raise InputError(
            f"intermediate_epochs={intermediate_epochs} has no effect without terms of "
            "embeddings, states or attention; give some, or leave it out."
        )
    first = Phase(layers, intermediate_epochs, hard_label_weight=0.0)
    return [first, Phase(predictions, hard_label_weight=hard_label_weight)]


def _default_phase(task):
    if task.labelled:
        return Phase(soft_label_terms(task, weight=0.5))
    return Phase(soft_label_terms(task) + similarity_terms(task), hard_label_weight=0.0)


@dataclasses.dataclass
class Distillation(FineTuning):
    """The distillation of a teacher into a student for a task, from labels and from the teacher.

    As in `FineTuning`, the best epoch is kept. Its figures are those of the student, and prefixed
    with `teacher_` those of the teacher. If there is an unpruned teacher, `teacher_` is for it,
    and `pruned_teacher_` for the pruned one. `share_of_teacher` is the student's `task.monitor` on
    dev over the teacher's, of no loss or error.

    Args:
        task: the teacher's.
        model: the student, with the task's head, such as from `make_student`; built, like the
            teacher and the terms, in the scope of the strategy to train under.
        tokenizer: the student's.
        data, config, run, compress: as in `FineTuning`.
        teacher: a `Teacher` of a task.
        phases: a list of `Phase`; one of soft labels beside the task's own loss where None, and
            without labels one of the teacher's vectors and their similarities.
        teacher_train: examples that the teacher reads in place of `data.train`, one for each, such
            as the originals of translations; the same where None.

    Raises:
        InputError: by `run_all`, if a teacher, the student or a tokenizer does not fit, a phase
            has nothing to learn, or a term compares tokens of different tokenizers.
    """

    ADVICE = (
        "give the student more epochs, a higher learning rate, more layers, or further texts "
        "(recipes.augment)"
    )

    teacher: Teacher = dataclasses.field(kw_only=True)
    phases: list | None = None
    teacher_train: object = None

    def __post_init__(self):
        self.phases = self.phases or [_default_phase(self.task)]
        self.terms = [term for phase in self.phases for term in phase.terms]

    def check(self):
        if any(phase.epochs is None for phase in self.phases[:-1]):
            raise InputError("A phase before the last has no epochs; give Phase(terms, epochs).")
        check_vocabulary(self.tokenizer, self.model)
        self.teacher.check()
        check_model("The student", self.model, self.task)
        self.teacher.check_student(self.model, self.terms, self.reads_same_tokens())
        if any(phase.hard_label_weight for phase in self.phases):
            check_varied(self.task, self.data.train)
        check_saves(self.model)
        self.distillers = [self._distiller(phase) for phase in self.phases]

    def _distiller(self, phase):
        live = None if self.runs_once() else self.teacher.model
        terms = self.teacher.terms(phase.terms)
        if self.task.labelled:
            return self.distiller(self.model, self.task, terms, live, phase.hard_label_weight)
        return self.distiller(read_by_terms(self.model, terms), None, terms, live, 0)

    def distiller(self, *arguments):
        """Return a `Distiller` of its arguments."""
        return Distiller(*arguments)

    def reads_same_tokens(self):
        """Return whether teacher and student read the same tokens of a training example."""
        return self.teacher_train is None and self.teacher.has_tokens_of(self.tokenizer)

    def runs_once(self):
        """Return whether the teacher's outputs of the training examples are computed once."""
        if self.teacher.cache_dir is not None or not self.reads_same_tokens():
            return True
        # Vectors of all texts fit in memory.
        read = {term.teacher[0] for term in self.terms}
        return not self.task.labelled and read <= {*self.task.kind.reads}

    def encode(self):
        teacher, batches = self.teacher, super().encode()
        self.teacher_batches = batches
        if not self.reads_same_tokens():
            splits = self.data.parts()
            splits["train"] = self.teacher_train or self.data.train
            self.teacher_batches = self._encode_for(teacher, splits)
        check_lengths(self.teacher_batches["train"], teacher.model)
        if self.runs_once():
            batches["train"].targets = teacher.outputs(self.teacher_batches["train"], self.terms)
        return batches

    def _encode_for(self, teacher, splits):
        length = self.data.max_length
        return encode_splits(self.task, teacher.tokenizer, splits, self.config, length)

    def train(self):
        """Train the phases, each in a subfolder of the next one's run.

        Its final state has the student's weights, from which the next phase starts.
        """
        self.task.initialise_head(self.model, self.data.train)
        folders = [self.run]
        for _ in self.phases[1:]:
            folders.append(folders[-1].intermediate())
            folders[-2].start()
        for *phase, folder in zip(self.phases, self.distillers, reversed(folders), strict=True):
            if folder is not self.run:
                self._fit_phase(*phase, folder)
        super().train()

    def make_trainer(self):
        return self.distillers[-1]

    def _fit_phase(self, phase, trainer, folder):
        losses = ", ".join(dict.fromkeys(term.name for term in phase.terms))
        logging.info("Training %d epochs on %s first.", phase.epochs, losses)
        self.trainer, batches = trainer, self.batches["train"]
        config = dataclasses.replace(
            self.config,
            epochs=phase.epochs,
            max_steps=None,
            patience=0,
            keep_every=None,
            keep_best=0,
        )
        compile_model(config, trainer, len(batches))
        prints = self.fingerprints()
        with warnings.catch_warnings():
            # The head gets no gradients from layers; a later phase trains it.
            warnings.filterwarnings("ignore", "Gradients do not exist for variables")
            fit(trainer, batches, config, folder, lambda place: None, fingerprints=prints)
        plot_curves(folder.metrics(), folder.path / "curves.png", metric=None)

    def fingerprints(self):
        inputs = super().fingerprints() | self.teacher.fingerprints()
        if self.teacher_batches is not self.batches:
            train = self.teacher_batches["train"].inputs_fingerprint()
            inputs["the teacher's encoded batches"] = train
        return inputs

    def report(self, figures):
        advice = "a student learns its answers; give a better teacher"
        warn_of_baseline(figures, f"teacher_dev_{self.task.monitor}", advice)
        super().report(figures)

    def evaluate(self):
        """Return the scores of the best epoch and of the teachers."""
        figures, score = super().evaluate(), f"dev_{self.task.monitor}"
        splits, unpruned = self.data.parts(), self.teacher.unpruned
        teacher = self.teacher.score(splits, self.teacher_batches)
        if unpruned is not None:
            figures |= {f"pruned_teacher_{name}": value for name, value in teacher.items()}
            scored = {name: data for name, data in splits.items() if name != "train"}
            teacher = unpruned.score(splits, self._encode_for(unpruned, scored))
        figures |= {f"teacher_{name}": value for name, value in teacher.items()}
        if not lower_is_better(score) and teacher[score] > 0:
            figures["share_of_teacher"] = figures[score] / teacher[score]
        return figures
