"""Distillation for a task with the settings of the flags."""

import dataclasses

from absl import flags

from distill import compression, learning
from recipes.flags import (
    compression_flags,
    distillation_flags,
    model_flags,
    runner_flags,
    training_flags,
)
from tfnlp import checkpoints, text, training

FLAGS = flags.FLAGS
# Outputs that loss terms compare. Those that no term reads cost nothing: models compute them.
OUTPUTS = {"hidden_states": True, "attention_scores": True, "attention_projections": True}


@dataclasses.dataclass(frozen=True)
class Models:
    """Models of a distillation.

    Args:
        teachers: a list of models.
        unpruned: the teachers and their tokenizer before --keep_tokens pruned them, or None.
        student: a model.
        tokenizer: the student's.
        teacher_tokenizer: the teachers', or None if it is the student's.
    """

    teachers: list
    unpruned: tuple | None
    student: object
    tokenizer: object
    teacher_tokenizer: object


def distill(task, splits, teacher_train=None):
    """Start the run of the flags, and distil the teachers for a task.

    Args:
        task: see `tfnlp.tasks`.
        splits: {name: examples}, from `data_flags.read_splits`.
        teacher_train: as in `Distillation`.
    """
    if not FLAGS["monitor"].using_default_value:
        task.select_by(FLAGS.monitor)
    if FLAGS.family or FLAGS.size:
        model_flags.check_head(task, ())
    map_shards = runner_flags.map_shards("cache_dir")
    config, run = training_flags.start_run()
    with training.make_strategy(FLAGS.strategy).scope():
        models = make_models(task, splits["train"], splits["dev"])
        model_flags.check_fit(models.student, models.tokenizer)
        data = training.Splits.from_parts(splits, FLAGS.max_length)
        with compression_flags.rounding(models.student):
            learning.Distillation(
                task,
                models.student,
                models.tokenizer,
                data=data,
                config=config,
                run=run,
                compress=compression_flags.compressor(),
                teacher=make_teacher(task, models, map_shards),
                phases=make_phases(task, models),
                teacher_train=teacher_train,
            ).run_all()


def load_teacher(folder, task, dtype=None):
    """Return a teacher of the flags, with all outputs that a method may read."""
    return learning.load_teacher(folder, task, **OUTPUTS, **_vectors(), dtype=dtype)


def _vectors():
    """Return {"vectors": head} of --pooling, empty where it is not given."""
    head = model_flags.pooling_head() if "pooling" in FLAGS else None
    return {"vectors": head} if head else {}


def make_models(task, train, dev):
    """Load the teachers, pruned by the training examples, and the student of the flags."""
    folders, precision = distillation_flags.teacher_dirs(), FLAGS.teacher_precision
    if precision:
        training.check_precision(precision, "teacher_precision")
    learning.teacher_shares(distillation_flags.teacher_weights(), len(folders))
    tokenizer = learning.load_shared_tokenizer(folders)
    loaded = [load_teacher(folder, task, precision) for folder in folders]
    for teacher in loaded:
        model_flags.check_fit(teacher, tokenizer)
    exact = []
    if precision in ("bfloat16", "float16") and FLAGS.initialize and not FLAGS.student_dir:
        # A student starts from float32 weights, so the first teacher is loaded again.
        exact = [load_teacher(folders[0], task, "float32")]
    pruned, pruned_tokenizer = compression_flags.with_fewer_tokens(
        [*loaded, *exact], tokenizer, train, dev
    )
    unpruned = None if pruned[0] is loaded[0] else (loaded, tokenizer)
    source = pruned[-1] if exact else pruned[0]
    source = compression_flags.with_fewer_parts(source, task, pruned_tokenizer, train)
    student = start_student(source, task, pruned_tokenizer, compression.task_texts(train))
    if not task.labelled and not distillation_flags.compares_tokens():
        # Vectors of whole texts, for which the teacher keeps its tokens.
        return Models(loaded, None, *student[:2], tokenizer)
    return Models(pruned[: len(loaded)], unpruned, *student)


def start_student(teacher, task, tokenizer, texts):
    """Load or build the student of the flags.

    Args:
        teacher: the model whose weights the student may start from.
        task: see `tfnlp.tasks`.
        tokenizer: the teacher's tokenizer.
        texts: the training texts.

    Returns:
        The student, its tokenizer, and the teacher's tokenizer if it differs, else None.
    """
    if FLAGS.student_dir:
        head, classes = task.kind.head, task.num_classes
        attends = checkpoints.read_config(FLAGS.student_dir).attends
        options = dict(OUTPUTS) if attends else {"hidden_states": True}
        if not checkpoints.read_head(FLAGS.student_dir):
            options |= _vectors()
        student = checkpoints.load_model(FLAGS.student_dir, head, classes, **options)
        loaded = text.load_tokenizer(FLAGS.student_dir)
        return student, loaded, None if loaded.to_json() == tokenizer.to_json() else tokenizer
    arguments = distillation_flags.student_arguments()
    vectors = model_flags.word_vectors()
    if not FLAGS.tokenizer_dir and vectors is None:
        return learning.make_student(teacher, **arguments), tokenizer, None
    if FLAGS.tokenizer_dir:
        loaded = text.load_tokenizer(FLAGS.tokenizer_dir)
    else:
        loaded = text.word_tokenizer(vectors.words, texts)
    student = learning.make_student(
        teacher, **arguments, tokenizer=loaded, teacher_tokenizer=tokenizer
    )
    model_flags.start_embeddings(student, loaded, texts)
    return student, loaded, tokenizer


def make_teacher(task, models, map_shards):
    """Return the `Teacher` of the flags; `map_shards` as there."""
    weights = distillation_flags.teacher_weights()
    unpruned = models.unpruned and learning.Teacher(*models.unpruned, task, weights)
    tokenizer = models.teacher_tokenizer or models.tokenizer
    return learning.Teacher(
        models.teachers,
        tokenizer,
        task,
        weights,
        FLAGS.cache_dir,
        map_shards=map_shards,
        unpruned=unpruned,
    )


def make_phases(task, models):
    """Return the phases of the distillation that the flags describe."""
    terms = learning.make_terms(
        FLAGS.method,
        models.teachers[0],
        models.student,
        task,
        distillation_flags.layer_map(),
        **distillation_flags.method_arguments(),
    )
    intermediate_epochs = FLAGS.intermediate_epochs
    if intermediate_epochs is None:
        intermediate_epochs = 10 if FLAGS.method == "tinybert" else 0
    if not task.labelled and FLAGS.similarity_weight:
        dims = task.vectors.matryoshka_dims
        terms += learning.similarity_terms(task, FLAGS.similarity_weight, dims)
    label_weight = FLAGS.hard_label_weight if task.labelled else 0.0
    return learning.split_phases(terms, task, intermediate_epochs, label_weight)
