"""Distils a pretrained model into a smaller one on unlabelled text, before any task.

    python -m recipes.distill_general --teacher_dir=MODEL --texts=wiki.txt.gz,books.txt \\
        --num_layers=4 --hidden_dim=312 --num_heads=12 --output_dir=runs/general
    python -m recipes.finetune_classifier --model_dir=runs/general/best ...

The teacher is a masked language model, such as BERT, for every --method, or an encoder without
that head, such as MiniLM, for methods that compare hidden states and attention. Texts longer than
--max_length are split. OUTPUT_DIR/best is a Hugging Face folder for any fine-tuning.
"""

from absl import flags, logging

from distill import learning
from recipes.flags import distillation_flags, model_flags, runner_flags, training_flags
from recipes.shell import distillation_run, entry_point
from recipes.shell.command_line import group, no_effect
from tfnlp import objectives, text, training

FLAGS = flags.FLAGS
distillation_flags.define_student_flags(num_layers=4, method="tinybert")
distillation_flags.define_cache_flag()
with group("Texts"):
    flags.DEFINE_list(
        "texts",
        None,
        "Files: .tsv, .csv, .json, .jsonl, .parquet, else a text on each line; or with .gz.",
    )
    flags.DEFINE_string("text_column", "sentence", "Column of the text in tables.")
    flags.mark_flag_as_required("texts")
with group("Masking"):
    flags.DEFINE_float(
        "masked_share",
        None,
        "Share of masked tokens; 0.15 if not given where they are predicted.",
        0,
        1,
    )
    flags.DEFINE_bool("whole_words", False, "Mask all tokens of a word together.")
    flags.DEFINE_float(
        "masked_lm_weight",
        None,
        "Weight of the masked LM loss; if not given 0, or 2 of distilbert.",
        0,
    )
training_flags.define_training_flags(epochs=1, learning_rate=5e-4)


def main():
    distillation_flags.check_student()
    if FLAGS.keep_best:
        raise no_effect("keep_best", "where no dev is scored", "give keep_every")
    config, run = training_flags.start_run()
    weights = (FLAGS.soft_label_weight, FLAGS.masked_lm_weight)
    soft_labels, masked_lm_weight, masked_share = learning.resolve_masking(
        FLAGS.method, *weights, FLAGS.masked_share, FLAGS.whole_words
    )
    map_shards = runner_flags.map_shards("cache_dir")
    learning.check_cacheable(FLAGS.cache_dir, masked_share)
    predicts = soft_labels or masked_lm_weight > 0
    with training.make_strategy(FLAGS.strategy).scope():
        teacher = learning.load_general_teacher(
            FLAGS.teacher_dir, predicts, **distillation_run.OUTPUTS
        )
        tokenizer = text.load_tokenizer(FLAGS.teacher_dir)
        model_flags.check_fit(teacher, tokenizer)
        masking = None
        if masked_share:
            masking = objectives.Masking.from_tokenizer(tokenizer, masked_share, FLAGS.whole_words)
        student = learning.make_student(teacher, **distillation_flags.student_arguments())
        model_flags.check_fit(student, tokenizer)
        task = objectives.MaskedLM()
        terms = learning.make_terms(
            FLAGS.method,
            teacher,
            student,
            task if soft_labels else None,
            distillation_flags.layer_map(),
            **distillation_flags.method_arguments(),
        )
        texts = objectives.read_texts(FLAGS.texts, FLAGS.text_column)
        encodings, _ = objectives.encode_texts(texts, tokenizer, FLAGS.max_length)
        learning.GeneralDistillation(
            task if predicts else None,
            student,
            tokenizer,
            data=learning.UnlabelledTexts(encodings, masking),
            config=config,
            run=run,
            teacher=learning.Teacher(
                [teacher], tokenizer, cache_dir=FLAGS.cache_dir, map_shards=map_shards
            ),
            terms=terms,
            masked_lm_weight=masked_lm_weight,
        ).run_all()
    logging.info("Fine-tune it: --model_dir=%s", run.best)


if __name__ == "__main__":
    entry_point.run(main)
