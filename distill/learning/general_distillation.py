"""General distillation: a student learns from a pretrained teacher on unlabelled text.

Sanh et al. 2019, 'DistilBERT', section 3, and Jiao et al. 2020, 'TinyBERT', section 4.2. The
student's folder is then fine-tuned or distilled for any task.
"""

import dataclasses
import warnings

import keras
from absl import logging

from distill.learning.distiller import Distiller
from tfnlp.checkpoints import check_saves, load_model, read_head, save_model
from tfnlp.models import MASKED_LMS, check_lengths, check_vocabulary
from tfnlp.objectives import MaskedBatches, MaskedLM, Masking, predict_at_positions
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.text import Encodings, LengthBatches
from tfnlp.training.optimizer import compile_model
from tfnlp.training.resumable_fit import fit
from tfnlp.training.run_report import write_report
from tfnlp.utils.errors import InputError

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


def load_general_teacher(folder, predicts, **options):
    """Load a pretrained model as a teacher.

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


@dataclasses.dataclass(frozen=True)
class UnlabelledTexts:
    """Texts to learn from without labels.

    Args:
        encodings: `Encodings` of the texts.
        masking: a `Masking` of the texts for both models; None for whole texts.
    """

    encodings: Encodings
    masking: Masking | None = None

    def batches(self, config, pad_token_id, predicts):
        """Return batches of the texts, of masked ones if there is a masking.

        Args:
            config: a `TrainingConfig`.
            pad_token_id: of the tokenizer.
            predicts: whether masked tokens are predicted.
        """
        options = {"shuffle": True, "seed": config.seed, "pad_token_id": pad_token_id}
        if config.fixed_length:
            options["fixed_length"] = int(self.encodings.lengths.max())
        if self.masking is None:
            return LengthBatches(self.encodings, config.batch_size, **options)
        return MaskedBatches(self.encodings, config.batch_size, self.masking, predicts, **options)


def distill_general(teacher, student, texts, config, run, terms, masked_lm_weight=0.0):
    """Train a student on unlabelled texts to imitate its teacher.

    A killed run resumes from its folder and ends with the same weights. The last epoch is kept.

    Args:
        teacher: a `Teacher` with one model, from `load_general_teacher`. Outputs can be cached for
            whole texts only.
        student: a `TextModel` with the teacher's vocabulary, built in the scope of the strategy to
            train under.
        texts: `UnlabelledTexts`, encoded by the teacher's tokenizer.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to; its `best` is the student's folder.
        terms: a list of `Term`, such as `make_terms` returns; `logits` are those of masked tokens.
        masked_lm_weight: weight of the masked LM loss.

    Returns:
        A dict of figures: sizes, and the losses of the last epoch.

    Raises:
        InputError: before any training, if the models do not fit each other or the terms.
    """
    predicts = bool(masked_lm_weight) or any(term.teacher[0] == "logits" for term in terms)
    for model in (teacher.model, student):
        check_vocabulary(teacher.tokenizer, model)
    check_saves(student)
    _check_masking(teacher, texts, predicts)
    batches = texts.batches(config, teacher.tokenizer.pad_token_id, predicts)
    for model in (teacher.model, student):
        check_lengths(batches, model)
    logging.info(
        "%d texts of %d tokens in %d batches.",
        len(texts.encodings),
        len(texts.encodings.token_ids),
        len(batches),
    )
    if teacher.cache_dir is not None:
        batches.targets = teacher.outputs(batches, terms)
    distiller = _general_distiller(teacher, student, terms, masked_lm_weight, predicts)
    compile_model(config, distiller, len(batches))
    with warnings.catch_warnings():
        # Attention-only methods do not train the rest of the last block.
        warnings.filterwarnings("ignore", "Gradients do not exist for variables")
        fit(
            distiller,
            batches,
            config,
            run,
            lambda: save_model(student, run.best, tokenizer=teacher.tokenizer),
            fingerprints=teacher.fingerprints(student),
        )
    figures = {
        "parameters": count_parameters(student),
        "teacher_parameters": count_parameters(teacher.model),
        "texts": len(texts.encodings),
        "tokens": len(texts.encodings.token_ids),
        **{key: value for key, value in run.metrics()[-1].items() if key.endswith("loss")},
    }
    write_report(run, figures, metric="learning_rate", epoch="last")
    return figures


def _check_masking(teacher, texts, predicts):
    """Raise an InputError if masked tokens are predicted without masks, or cached with them."""
    if predicts and texts.masking is None:
        raise InputError("Masked tokens are to be predicted, but `masking` is None; give one.")
    check_cacheable(teacher.cache_dir, texts.masking.share if texts.masking else 0)


def _general_distiller(teacher, student, terms, masked_lm_weight, predicts):
    """Build the `Distiller` of a student that predicts masked tokens, or has no task."""
    live = teacher.model if teacher.cache_dir is None else None
    if predicts:
        student, live = predict_at_positions(student), live and predict_at_positions(live)
        return Distiller(student, MaskedLM(), terms, live, masked_lm_weight)
    # Leave out outputs that no term reads, such as a pooler, which would get no gradients.
    names = {term.student[0] for term in terms} & student.output.keys()
    student = keras.Model(student.input, {name: student.output[name] for name in names})
    return Distiller(student, None, terms, live, masked_lm_weight)
