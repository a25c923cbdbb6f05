"""General distillation: a student learns from a pretrained teacher on unlabelled text.

Sanh et al. 2019, 'DistilBERT', section 3, and Jiao et al. 2020, 'TinyBERT', section 4.2. The
student's folder is then fine-tuned or distilled for any task.
"""

import dataclasses
import warnings

from absl import logging

from distill.learning.distiller import Distiller
from distill.learning.teacher import Teacher
from distill.learning.terms import check_terms, read_by_terms
from tfnlp.checkpoints import check_saves
from tfnlp.corpora import warn_of_unknown
from tfnlp.models import check_lengths, check_vocabulary
from tfnlp.objectives import MaskedBatches, Masking, predict_at_positions
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.text import Encodings, LengthBatches
from tfnlp.training.experiments.experiment import Experiment
from tfnlp.training.experiments.finetuning import unknown_share
from tfnlp.training.run.fingerprints import content_fingerprint
from tfnlp.training.run.run_report import write_report
from tfnlp.training.step.optimizer import compile_model
from tfnlp.utils.errors import InputError
from tfnlp.utils.formatting import counted

# Methods that learn the teacher's predictions for masked tokens.
PREDICTING = ("logits", "distilbert")


def resolve_masking(
    method, soft_label_weight=None, masked_lm_weight=None, masked_share=None, whole_words=False
):
    """Resolve the defaults of what is learned at masked tokens.

    Args:
        method: one of `METHODS`.
        soft_label_weight, masked_lm_weight: weights of the teacher's predictions and of the tokens
            themselves; the method's where None (both for "distilbert", as in its paper).
        masked_share: the share of tokens to mask; where None 0.15 if they are predicted, else 0.
        whole_words: whether whole words are masked.

    Returns:
        Whether soft labels are learned, `masked_lm_weight` and `masked_share`.

    Raises:
        InputError: if `whole_words` is set but nothing is masked.
    """
    soft_labels = method in PREDICTING if soft_label_weight is None else soft_label_weight > 0
    if masked_lm_weight is None:
        masked_lm_weight = 2.0 if method == "distilbert" else 0.0
    if masked_share is None:
        masked_share = 0.15 if soft_labels or masked_lm_weight > 0 else 0.0
    if whole_words and not masked_share:
        raise InputError(
            "whole_words=True has no effect where no tokens are masked; give a masked_share above "
            "0, or leave it out."
        )
    return soft_labels, masked_lm_weight, masked_share


def check_cacheable(cache_dir, masked_share):
    """Raise an InputError for a cache of teacher outputs if each epoch masks other tokens."""
    if cache_dir is not None and masked_share:
        raise InputError(
            f"cache_dir={cache_dir} stores the teacher's outputs for whole texts, but "
            f"masked_share={masked_share} masks other tokens in each epoch; leave cache_dir out, "
            "or give masked_share=0 and a method of states and attention."
        )


@dataclasses.dataclass(frozen=True)
class UnlabelledTexts:
    """Texts to learn from without labels.

    Args:
        encodings: `Encodings` of the texts.
        masking: a `Masking` of the texts for both models; None for whole texts.
    """

    encodings: Encodings
    masking: Masking | None = None


@dataclasses.dataclass
class GeneralDistillation(Experiment):
    """The distillation of a pretrained teacher on unlabelled texts, which keeps the last epoch.

    Args:
        task: a `MaskedLM` if masked tokens are predicted, else None.
        model: the student, with the teacher's vocabulary, built in the scope of the strategy to
            train under; `run.best` is its folder.
        tokenizer: of both models.
        data: `UnlabelledTexts`, encoded by this tokenizer.
        config, run: as in `Experiment`.
        teacher: a `Teacher` with one model, from `load_general_teacher`. Outputs can be cached for
            whole texts only.
        terms: a list of `Term`, such as `make_terms` returns; `logits` are those of masked tokens.
        masked_lm_weight: weight of the masked LM loss.

    Raises:
        InputError: by `run_all`, if the models do not fit each other or the terms.
    """

    teacher: Teacher
    terms: list
    masked_lm_weight: float = 0.0

    def check(self):
        self.teacher.check()
        check_vocabulary(self.tokenizer, self.model)
        check_saves(self.model)
        if self.config.keep_best:
            raise InputError(
                f"keep_best={self.config.keep_best} has no effect here, where no dev says which "
                "epochs are the best; give `keep_every`."
            )
        masking = self.data.masking
        if self.task is not None and masking is None:
            raise InputError("Masked tokens are to be predicted, but `masking` is None; give one.")
        check_cacheable(self.teacher.cache_dir, masking.share if masking else 0)
        check_terms(self.terms, self.teacher.model, self.model)

    def encode(self):
        encodings, masking = self.data.encodings, self.data.masking
        options = {"shuffle": True, "seed": self.config.seed}
        options["pad_token_id"] = self.tokenizer.pad_token_id
        if self.config.fixed_length:
            options["fixed_length"] = int(encodings.lengths.max())
        size, predicts = self.config.batch_size, self.task is not None
        if masking is None:
            batches = LengthBatches(encodings, size, **options)
        else:
            batches = MaskedBatches(encodings, size, masking, predicts, **options)
        for model in (self.teacher.model, self.model):
            check_lengths(batches, model)
        unknown = unknown_share(self.tokenizer, encodings)
        counts = len(encodings), len(encodings.token_ids), 100 * unknown
        number = counted(len(batches), "batch", "batches")
        logging.info("%d texts of %d tokens, %.1f %% of them unknown, in %s.", *counts, number)
        warn_of_unknown(unknown)
        if self.teacher.cache_dir is not None:
            batches.targets = self.teacher.outputs(batches, self.terms)
        return {"train": batches}

    def build(self):
        student = self.model
        live = self.teacher.model if self.teacher.cache_dir is None else None
        if self.task is not None:
            student, live = predict_at_positions(student), live and predict_at_positions(live)
        else:
            student = read_by_terms(student, self.terms)
        trainer = Distiller(student, self.task, self.terms, live, self.masked_lm_weight)
        compile_model(self.config, trainer, len(self.batches["train"]))
        return trainer

    def fit(self):
        with warnings.catch_warnings():
            # Attention-only methods do not train the rest of the last block.
            warnings.filterwarnings("ignore", "Gradients do not exist for variables")
            super().fit()

    def fingerprints(self):
        model = {"model": content_fingerprint(self.model.text_config)}
        return self.teacher.fingerprints() | model

    def evaluate(self):
        """Return sizes, and the losses of the last epoch."""
        last = self.run.metrics()[-1]
        return {
            "parameters": count_parameters(self.model),
            "teacher_parameters": count_parameters(self.teacher.model),
            "texts": len(self.data.encodings),
            "tokens": len(self.data.encodings.token_ids),
            **{key: value for key, value in last.items() if key.endswith("loss")},
        }

    def report(self, figures):
        write_report(self.run, figures, metric="learning_rate", epoch="last")
