"""Distils a fine-tuned classifier into a smaller one.

    python -m recipes.distill_classifier --teacher_dir=runs/teacher/best --train=train.tsv \\
        --dev=dev.tsv --num_layers=3 --output_dir=runs/student

The student has fewer layers, and a smaller width where --hidden_dim says so. It starts from
the teacher's embeddings and the layers of --layer_map where the widths agree, and learns from
the labels and the teacher's soft labels, and on request from its hidden states and attention
scores. OUTPUT_DIR/best is a Hugging Face folder.
"""

from absl import flags

from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("teacher_dir", None, "Folder of the fine-tuned teacher.")
flags.DEFINE_integer("num_layers", 3, "The student's encoder blocks.", 1)
flags.DEFINE_integer("hidden_dim", None, "The student's width; the teacher's if not given.", 1)
flags.DEFINE_integer("num_heads", None, "The student's heads; as its width asks if not given.", 1)
flags.DEFINE_list(
    "layer_map",
    None,
    "For each student layer the teacher's it learns from, counted from 0; spread evenly if "
    "not given.",
)
flags.DEFINE_bool("initialize", True, "Start from the teacher's weights where widths agree.")
flags.DEFINE_float("temperature", 2.0, "Temperature of the soft labels.", 1e-3)
flags.DEFINE_float("hard_label_weight", 0.5, "Weight of the loss on the labels.", 0)
flags.DEFINE_float("soft_label_weight", 0.5, "Weight of the loss on the soft labels.", 0)
flags.DEFINE_float("hidden_state_weight", 0.0, "Weight of the loss on hidden states.", 0)
flags.DEFINE_float("attention_weight", 0.0, "Weight of the loss on attention scores.", 0)
flags.DEFINE_string(
    "cache_dir", None, "Folder that caches the teacher's outputs on disk, computed once."
)
common.define_data_flags()
common.define_training_flags(epochs=6, learning_rate=1e-4)
flags.mark_flag_as_required("teacher_dir")


def main():
    import keras

    from distill.learning.distiller import Distiller
    from distill.learning.layer_map import check_layer_map, even_layer_map
    from distill.learning.losses import make_losses
    from distill.learning.student import initialize_student, student_config
    from distill.learning.teacher_outputs import compute_teacher_outputs
    from tfnlp.checkpoints import load_model, read_config, read_labels, save_model
    from tfnlp.models import build_model
    from tfnlp.tasks import Classification
    from tfnlp.text import load_tokenizer
    from tfnlp.training import encode_batches, fit, make_strategy, set_precision
    from tfnlp.training.fingerprint import content_fingerprint, model_fingerprint
    from tfnlp.training.report import report_classifier

    run = common.run_folder()
    labels = read_labels(FLAGS.teacher_dir)
    train, dev, test = common.read_splits(labels)
    tokenizer = load_tokenizer(FLAGS.teacher_dir)
    task = Classification(labels)
    sizes = FLAGS.max_length, FLAGS.batch_size
    keras.utils.set_random_seed(FLAGS.seed)
    set_precision(FLAGS.precision)
    config = common.training_config()
    teacher_config = read_config(FLAGS.teacher_dir)
    small = student_config(teacher_config, FLAGS.num_layers, FLAGS.hidden_dim, FLAGS.num_heads)
    layer_map = common.layer_map_flag() or even_layer_map(
        teacher_config.num_layers, small.num_layers
    )
    check_layer_map(layer_map, teacher_config.num_layers, small.num_layers)
    with make_strategy(FLAGS.strategy).scope():
        losses = make_losses(
            layer_map,
            teacher_config.hidden_dim,
            small.hidden_dim,
            temperature=FLAGS.temperature,
            soft_label_weight=FLAGS.soft_label_weight,
            hidden_state_weight=FLAGS.hidden_state_weight,
            attention_weight=FLAGS.attention_weight,
        )
        outputs = {
            "hidden_states": FLAGS.hidden_state_weight > 0,
            "attention_scores": FLAGS.attention_weight > 0,
        }
        teacher = load_model(FLAGS.teacher_dir, "classifier", **outputs)
        common.check_fit(teacher, tokenizer)
        student = build_model(small, "classifier", len(labels), **outputs)
        if FLAGS.initialize:
            initialize_student(student, teacher, layer_map)
        batches = encode_batches(task, tokenizer, train, *sizes, shuffle=True, seed=FLAGS.seed)
        if FLAGS.cache_dir:
            reads = [read for _, loss in losses for read in loss.reads()]
            batches.targets = compute_teacher_outputs(teacher, batches, reads, FLAGS.cache_dir)
        live = None if FLAGS.cache_dir else teacher
        distiller = Distiller(student, losses, live, FLAGS.hard_label_weight)
        distiller.compile(config.optimizer(distiller, len(batches)), jit_compile=False)

    def save_best():
        save_model(student, run.best, labels, tokenizer)

    dev_batches = encode_batches(task, tokenizer, dev, *sizes)
    made_from = {
        "train": content_fingerprint([train, labels]),
        "dev": content_fingerprint(dev),
        "teacher_dir": model_fingerprint(teacher),
    }
    fit(distiller, batches, config, run, save_best, dev_batches, made_from=made_from)
    test_batches = encode_batches(task, tokenizer, test, *sizes) if test else None
    report_classifier(run, labels, dev_batches, test_batches, teacher=teacher)


if __name__ == "__main__":
    common.run(main)
