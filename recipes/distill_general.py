"""Distils a pretrained model into a smaller one on unlabelled text, before any task.

    python -m recipes.distill_general --teacher_dir=MODEL --texts=wiki.txt.gz,books.txt \\
        --num_layers=4 --hidden_dim=312 --num_heads=12 --output_dir=runs/general
    python -m recipes.finetune_classifier --model_dir=runs/general/best ...

A masked language model, such as BERT, teaches by every method; an encoder without that head, such
as MiniLM, by those that compare states and attention. Of a text that is longer than --max_length
the rest is a further text. OUTPUT_DIR/best is a Hugging Face folder, from which every fine-tuning
starts.
"""

from absl import flags, logging

from distill import learning
from recipes import common, model_flags
from recipes.command_line import group
from tfnlp import objectives, text, training

FLAGS = flags.FLAGS


@group("Texts")
def define_text_flags():
    """Define the flags of the unlabelled texts."""
    flags.DEFINE_list(
        "texts",
        None,
        "Files of texts: .tsv, .csv, .json or .jsonl; of others each line is a text. Or with .gz.",
    )
    flags.DEFINE_string("text_column", "sentence", "Column of the text, where there are columns.")
    flags.mark_flag_as_required("texts")


@group("Hidden tokens")
def define_masking_flags():
    """Define the flags of masking."""
    flags.DEFINE_float(
        "masked_share",
        None,
        "Share of the tokens that are hidden; if not given 0.15 where they are predicted, else 0.",
        0,
        1,
    )
    flags.DEFINE_bool(
        "whole_words", False, "Hide all tokens of a word together, where tokens are hidden."
    )
    flags.DEFINE_float(
        "masked_lm_weight",
        None,
        "Weight of the loss on hidden tokens; 2 with --method=distilbert, else 0, if not given.",
        0,
    )


common.define_student_flags(num_layers=4, method="tinybert")
common.define_cache_flag()
define_text_flags()
define_masking_flags()
common.define_training_flags(epochs=1, learning_rate=5e-4)


def main():
    import keras

    config = common.training_config()
    run = common.run_folder()
    keras.utils.set_random_seed(FLAGS.seed)
    training.set_precision(FLAGS.precision)
    weights = (FLAGS.soft_label_weight, FLAGS.masked_lm_weight)
    soft_labels, masked_lm_weight, masked_share = learning.resolve_masking(
        FLAGS.method, *weights, FLAGS.masked_share, FLAGS.whole_words
    )
    learning.check_cacheable(FLAGS.cache_dir, masked_share)
    predicts = soft_labels or masked_lm_weight > 0
    with training.make_strategy(FLAGS.strategy).scope():
        outputs = ("hidden_states", "attention_scores", "attention_projections")
        outputs = dict.fromkeys(outputs, True)
        teacher = learning.load_general_teacher(FLAGS.teacher_dir, predicts, **outputs)
        tokenizer = text.load_tokenizer(FLAGS.teacher_dir)
        common.check_fit(teacher, tokenizer)
        masking = None
        if masked_share:
            masking = objectives.Masking.from_tokenizer(tokenizer, masked_share, FLAGS.whole_words)
        student = learning.make_student(teacher, **common.student_arguments())
        common.check_fit(student, tokenizer)
        terms = learning.make_terms(
            FLAGS.method,
            teacher,
            student,
            objectives.MaskedLM() if soft_labels else None,
            common.layer_map_flag(),
            **common.method_arguments(),
        )
        texts = objectives.read_texts(FLAGS.texts, FLAGS.text_column)
        encodings, _ = objectives.encode_texts(texts, tokenizer, FLAGS.max_length)
        figures = learning.distill_general(
            learning.Teacher([teacher], tokenizer, cache_dir=FLAGS.cache_dir),
            student,
            learning.UnlabelledTexts(encodings, masking),
            config,
            run,
            terms=terms,
            masked_lm_weight=masked_lm_weight,
        )
    logging.info("Fine-tune it: --model_dir=%s", run.best)
    return figures


if __name__ == "__main__":
    common.run(main, check=model_flags.check_family)
