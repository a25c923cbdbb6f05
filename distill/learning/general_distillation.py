"""General distillation: a student learns from a pretrained teacher on unlabelled text.

Sanh et al. 2019, 'DistilBERT', section 3, and Jiao et al. 2020, 'TinyBERT', section 4.2. The
student's folder is then fine-tuned or distilled for any task.
"""

import warnings

import keras
from absl import logging

from distill.learning.distiller import Distiller
from distill.learning.teacher_outputs import compute_teacher_outputs
from tfnlp.checkpoints import check_saves, load_model, read_head, save_model
from tfnlp.models import MASKED_LMS, check_lengths, check_vocabulary
from tfnlp.objectives import MaskedBatches, MaskedLM, predict_at_positions
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.text import LengthBatches
from tfnlp.training.fingerprints import content_fingerprint, model_fingerprint
from tfnlp.training.resumable_fit import fit
from tfnlp.training.run_report import write_report
from tfnlp.utils.errors import InputError

# Methods that learn the teacher's predictions for masked tokens.
PREDICTING = ("logits", "distilbert")


def what_is_predicted(
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
            "whole_words=True has no effect where no tokens are hidden; give a masked_share above "
            "0, or leave it out."
        )
    return soft_labels, masked_lm_weight, masked_share


def check_cacheable(cache_dir, masked_share):
    """Raise an InputError for a cache of teacher outputs if each epoch masks other tokens."""
    if cache_dir is not None and masked_share:
        raise InputError(
            f"cache_dir={cache_dir} keeps what the teacher says of whole texts, but "
            f"masked_share={masked_share} of their tokens are hidden, others in each epoch; leave "
            "it out, or hide none (by masked_share=0 and a method of states and attention)."
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
            f"{folder} holds no masked language model, so that there are no soft labels of hidden "
            "tokens to learn; give one that predicts tokens, or a method of states and attention."
        )
    return load_model(folder, head, **options)


def distill_general(
    teacher,
    student,
    tokenizer,
    encodings,
    config,
    run,
    terms,
    masking=None,
    masked_lm_weight=0.0,
    made_from=None,
    cache_dir=None,
):
    """Train a student on unlabelled texts to imitate its teacher.

    A killed run resumes from its folder and ends with the same weights. The last epoch is kept.

    Args:
        teacher: from `load_general_teacher`.
        student: a `TextModel` with the teacher's vocabulary, built in the scope of the strategy to
            train under.
        tokenizer: of both.
        encodings: `Encodings` of the texts.
        config: a `TrainingConfig`.
        run: the `RunFolder` to write to; its `best` is the student's folder.
        terms: a list of `Term`, such as `make_terms` returns; `logits` are those of masked tokens.
        masking: a `Masking` of the texts for both models; None for whole texts.
        masked_lm_weight: weight of the masked LM loss.
        made_from: a dict of fingerprints, as `fit` takes it.
        cache_dir: folder to compute the teacher's outputs into once, for whole texts only; where
            None the teacher runs on each batch.

    Returns:
        A dict of figures: sizes, and the losses of the last epoch.

    Raises:
        InputError: before any training, if the models do not fit each other or the terms.
    """
    for model in (teacher, student):
        check_vocabulary(tokenizer, model)
    check_saves(student)
    predicts = bool(masked_lm_weight) or any(term.teacher[0] == "logits" for term in terms)
    if predicts and masking is None:
        raise InputError("Hidden tokens are to be predicted, but `masking` is None; give one.")
    check_cacheable(cache_dir, masking.share if masking else 0)
    options = {"shuffle": True, "seed": config.seed, "pad_token_id": tokenizer.pad_token_id}
    if config.fixed_length:
        options["fixed_length"] = int(encodings.lengths.max())
    if masking is None:
        batches = LengthBatches(encodings, config.batch_size, **options)
    else:
        batches = MaskedBatches(encodings, config.batch_size, masking, predicts, **options)
    for model in (teacher, student):
        check_lengths(batches, model)
    logging.info(
        "%d texts of %d tokens in %d batches.",
        len(encodings),
        len(encodings.token_ids),
        len(batches),
    )
    if predicts:
        task, taught, teaching = MaskedLM(), *map(predict_at_positions, (student, teacher))
    else:
        # Leave out outputs that no term reads, such as a pooler, which would get no gradients.
        read = {term.student[0] for term in terms} & student.output.keys()
        taught = keras.Model(student.input, {key: student.output[key] for key in read})
        task, teaching = None, teacher
    made_from = dict(made_from or {})
    if cache_dir is not None:
        reads, teaching = [term.teacher for term in terms], None
        batches.targets = compute_teacher_outputs(teacher, batches, reads, cache_dir)
        made_from["cache_dir"] = "on disk"  # states on disk are rounded to float16
    distiller = Distiller(taught, task, terms, teaching, masked_lm_weight)
    config.compile(distiller, len(batches))
    with warnings.catch_warnings():
        # Attention-only methods do not train the rest of the last block.
        warnings.filterwarnings("ignore", "Gradients do not exist for variables")
        fit(
            distiller,
            batches,
            config,
            run,
            lambda: save_model(student, run.best, tokenizer=tokenizer),
            fingerprints={
                "teacher_dir": model_fingerprint(teacher),
                "model": content_fingerprint(student.text_config),
                **made_from,
            },
        )
    last = run.metrics()[-1]
    figures = {
        "parameters": count_parameters(student),
        "teacher_parameters": count_parameters(teacher),
        "texts": len(encodings),
        "tokens": len(encodings.token_ids),
        **{key: value for key, value in last.items() if key.endswith("loss")},
    }
    write_report(run, figures, metric="learning_rate", epoch="last")
    return figures
