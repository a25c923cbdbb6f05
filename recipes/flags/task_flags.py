"""Flags of the fine-tuning tasks, in training and distillation, and reading of labelled texts."""

from absl import flags, logging

from recipes.flags import dataclass_flags
from recipes.flags.data_flags import define_split_flags, read_splits
from recipes.shell.command_line import (
    define_alias,
    flag_text,
    group,
    hide,
    no_effect,
    refuse_beside,
    refuse_without,
)
from tfnlp import checkpoints, tasks, text
from tfnlp.configs import POOLING_MODES
from tfnlp.tasks import classification, multi_label, regression
from tfnlp.tasks.answerer_settings import AnswererSettings
from tfnlp.tasks.classifier_settings import ClassLoss, Decision
from tfnlp.tasks.multi_label import as_threshold
from tfnlp.tasks.vector_settings import (
    RETRIEVAL_SCORES,
    SCORED,
    SIMILARITY_SCORES,
    VectorSettings,
)
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS


@group("Score")
def define_monitor_flag(scores, default=None, rest=""):
    """Define --monitor, one of some scores or the loss; `rest` ends its help."""
    flags.DEFINE_enum(
        "monitor",
        default,
        [*scores, "loss"],
        f"Score on --dev that selects the best epoch, or the loss{rest}.",
    )


@group("Data")
def define_classification_data_flags():
    """Define the data flags of a classifier."""
    formats = ".tsv, .csv, .json, .jsonl, .parquet, or with .gz; or a saved dataset"
    define_split_flags(f"Training file: {formats}.", required=("train",))
    flags.DEFINE_string(
        "fold",
        None,
        "In place of --dev, a fold of --train with like shares of each label: 2/5 for the second "
        "of 5 (`sweep` runs all of them).",
    )
    flags.mark_flags_as_mutual_exclusive(["dev", "fold"], required=True)
    flags.DEFINE_string("text_column", "sentence", "Column of the text.")
    flags.DEFINE_string("pair_column", None, "Column of the second text, for pairs.")
    flags.DEFINE_string(
        "label_column", "label", "Column of the label; in JSON also a path, such as labels.label."
    )
    flags.DEFINE_list(
        "labels", None, "Labels in the order of their ids; those of --train, sorted, if not given."
    )
    flags.DEFINE_bool(
        "multi_label",
        False,
        "Whether a text has any number of labels: in --label_column with commas between them, in "
        "JSON also a list.",
    )
    flags.DEFINE_list(
        "label_columns",
        None,
        "A column for each label, in place of --label_column: its probability, or its votes; with "
        "--multi_label, 1 where it applies, else 0.",
    )
    flags.DEFINE_float(
        "probability_weight",
        1.0,
        "Share of the probabilities of --label_columns in what is learned; the rest is the label "
        "in --label_column.",
        0,
        1,
    )
    flags.DEFINE_string("label_separator", ",", "What parts the labels in --label_column.")
    hide("label_separator", "probability_weight")


@group("Score")
def define_classification_score_flags():
    """Define the flags of a classifier's score."""
    scores = sorted({*classification.SCORES, *multi_label.SCORES})
    rest = "; f1 is the F1 of --positive_label. With --multi_label macro_f1 if not given"
    define_monitor_flag(scores, "accuracy", rest)
    flags.DEFINE_string(
        "threshold",
        None,
        "Probability from 0 to 1 below which the answer is --none_label. With --multi_label, from "
        "which a label applies; label (one for each) or all (one for all), of the highest F1 on "
        "--dev; label if not given.",
    )
    dataclass_flags.define(Decision, "calibrated", "selective_accuracy", "none_label")
    dataclass_flags.define(ClassLoss, "focal_gamma")
    flags.DEFINE_list(
        "class_weights",
        None,
        "Weights of classes in the loss: balanced, or NAME=WEIGHT each, others 1; with "
        "--multi_label, of each label where it applies.",
    )
    flags.DEFINE_string(
        "positive_label", None, "Label whose F1 is reported, as in MRPC and QQP (1 there)."
    )


@group("Score")
def define_baseline_flag():
    """Define --baseline, which has linear classifiers reported beside a model's scores."""
    flags.DEFINE_bool(
        "baseline",
        False,
        "Report score, size and time of linear classifiers of bags of words too (seconds; minutes "
        "for each of many labels); see baseline_classifier.",
    )


@group("Task")
def define_answerer_flags():
    """Define the flags of question answering."""
    dataclass_flags.define(AnswererSettings)
    flags.DEFINE_integer("n_best", 5, "Answers to write for each question.", 1)
    define_monitor_flag(["f1", "exact_match"], rest="; f1 if not given")


@group("Task")
def define_tagger_flags():
    """Define the flags of tagging."""
    flags.DEFINE_string(
        "comment_prefix", None, "Prefix of comment lines; that of CoNLL and KLUE if not given."
    )
    flags.DEFINE_integer("stride", 32, "Tokens that a window shares with the one before.", 0)
    scores = ["f1", "precision", "recall", "word_accuracy", "macro_f1", "character_macro_f1"]
    rest = "; f1 of entities if not given, else word_accuracy, of characters macro_f1"
    define_monitor_flag([*scores, "character_accuracy"], rest=rest)


@group("Task")
def define_chooser_flags():
    """Define the flags of multiple choice."""
    flags.DEFINE_string("prompt_column", "prompt", "Column of the prompt.")
    flags.DEFINE_list(
        "choice_columns", None, "Columns of the choices; choice0, choice1, ... if not given."
    )
    flags.DEFINE_string("label_column", "label", "Column of the number of the correct choice.")


@group("Task")
def define_regression_flags():
    """Define the flags of regression."""
    flags.DEFINE_string("text_column", "sentence1", "Column of the text.")
    flags.DEFINE_string("pair_column", "sentence2", "Column of the second text; empty for none.")
    flags.DEFINE_string("score_column", "score", "Column of the number; also --label_column.")
    define_alias("label_column", "score_column")
    define_monitor_flag(regression.SCORES, "pearson")


@group("Task")
def define_embedder_flags():
    """Define the flags of the training of sentence vectors."""
    define_text_group_flags(
        "Columns of a text, of one like it and, for ranking and triplet, of any unlike it.",
        "Column of the number, with cosine, cosent and contrastive; score if not given.",
    )
    dataclass_flags.define(VectorSettings)
    define_pooling_flag()


@group("Task")
def define_pooling_flag(
    default="that of a folder of sentence-transformers, else mean, if not given",
):
    """Define --pooling, the vector of a text; `default` ends its help."""
    flags.DEFINE_list(
        "pooling",
        None,
        f"Vector of a text, of its tokens' states, from {', '.join(POOLING_MODES)}; {default}.",
    )


@group("Task")
def define_text_group_flags(texts, score, folder="model_dir"):
    """Define the flags of groups of texts, with the help of their columns, and the prompts.

    Args:
        texts: help of --text_columns.
        score: help of --score_column.
        folder: flag of the model whose prompts are the default.
    """
    flags.DEFINE_list("text_columns", ["sentence1", "sentence2"], texts)
    flags.DEFINE_string("score_column", None, f"{score.removesuffix('.')}; also --label_column.")
    define_alias("label_column", "score_column")
    rest = "; if not given ndcg_10, or spearman with a score"
    define_monitor_flag([*RETRIEVAL_SCORES, *SIMILARITY_SCORES], rest=rest)
    for name, use in (("query", "the first texts"), ("document", "the other texts")):
        flags.DEFINE_string(
            f"{name}_prompt",
            None,
            f"What {use} begin with, such as '{name}: '; that of --{folder} if not given.",
        )


def read_text_groups(settings):
    """Return the groups of texts as of `read_splits`, for `VectorSettings`.

    Raises:
        InputError: for a column of numbers that the loss does not read.
    """
    is_scored = settings.loss in SCORED
    if FLAGS.score_column and not is_scored:
        raise no_effect("score_column", f"with loss={settings.loss}", "give loss=cosent")
    score = (FLAGS.score_column or "score") if is_scored else None
    return read_splits(lambda path: tasks.read_text_groups(path, FLAGS.text_columns, score))


def read_prompts(folder):
    """Return what texts begin with, by the flags, else as in a model's folder.

    Args:
        folder: of the model, or None.

    Returns:
        The beginnings of first and of other texts, and the settings of a model that keeps them.
    """
    known = checkpoints.read_task_settings(folder) if folder else {}
    of_flags = {name: FLAGS[f"{name}_prompt"].value for name in ("query", "document")}
    return tasks.prompts_of(known, **{k: v for k, v in of_flags.items() if v is not None})


def read_questions():
    """Return the questions as of `read_splits`."""
    return read_splits(lambda path: tasks.read_questions(path, FLAGS.null_answers))


def read_choices():
    """Return the multiple-choice examples as of `read_splits`."""
    columns = FLAGS.prompt_column, FLAGS.choice_columns, FLAGS.label_column
    return read_splits(lambda path: tasks.read_choices(path, *columns))


def read_scored():
    """Return the scored texts as of `read_splits`."""
    columns = FLAGS.text_column, FLAGS.pair_column, FLAGS.score_column
    return read_splits(lambda path: tasks.read_scored_pairs(path, *columns))


def read_tagging(labels, unit):
    """Return the task, and the tagged sentences as of `read_splits`.

    Args:
        labels: the tags in order of their ids, or None for those in --train.
        unit: "word" or "character".
    """
    train = tasks.read_tagged(FLAGS.train, labels, unit, FLAGS.comment_prefix)
    labels = labels or tasks.tag_names(train)
    _check_several(labels)
    splits = read_splits(
        lambda path: tasks.read_tagged(path, labels, unit, FLAGS.comment_prefix), lambda _: train
    )
    # At inference, texts are split into words as in these sentences.
    splitter = text.WordSplitter.from_sentences(train.sentences) if unit == "word" else None
    return tasks.Tagging(labels, FLAGS.stride, unit, splitter), splits


def read_classification(label_names=None):
    """Return the task of a classifier, and the labelled texts as of `read_splits`.

    Args:
        label_names: as in `read_labelled`.
    """
    splits = read_labelled(label_names)
    train = splits["train"]
    weights = tasks.class_weights(FLAGS.class_weights, train, FLAGS.multi_label)
    loss = dataclass_flags.read(ClassLoss, class_weights=weights)
    options = {"class_loss": loss, "linear": FLAGS.baseline}
    if FLAGS.multi_label:
        of_one_label = ["positive_label", "calibrate", "selective_accuracy", "none_label"]
        refuse_beside(of_one_label, "`multi_label`")
        if joined := [name for name in train.label_names if FLAGS.label_separator in name]:
            raise InputError(
                f"label_separator={FLAGS.label_separator} is in the label {joined[0]!r}, which "
                "would be several where predictions are read; give another, such as '|'."
            )
        options["separator"] = FLAGS.label_separator
        if FLAGS.threshold:
            options["threshold"] = FLAGS.threshold
        task = tasks.MultiLabelClassification(train.label_names, **options)
        if FLAGS["monitor"].using_default_value:
            FLAGS["monitor"].value = task.monitor  # for the model card
        return task, splits
    threshold = {"threshold": as_threshold(FLAGS.threshold)} if FLAGS.threshold else {}
    options["decision"] = dataclass_flags.read(Decision, **threshold)
    if not options["decision"].rejects:
        refuse_without(["none_label"], "threshold")
    options["positive_label"] = FLAGS.positive_label
    return tasks.Classification(train.label_names, **options), splits


def read_labelled(label_names=None):
    """Return the labelled texts as of `read_splits`.

    Args:
        label_names: the labels of an existing model; if None, --labels or those in --train.
    """
    if FLAGS.multi_label:
        refuse_beside(["probability_weight"], "`multi_label`")
    refuse_without(["label_separator"], "multi_label")
    refuse_without(["probability_weight"], "label_columns")
    if label_names is None and FLAGS.labels:
        try:
            text.check_label_names(FLAGS.labels, least=1 if FLAGS.multi_label else 2)
        except InputError as e:
            raise InputError(f"labels={flag_text(FLAGS.labels)}: {e}") from e
    if label_names and label_names == checkpoints.unnamed_labels(len(label_names)):
        label_names = _name_classes(label_names)
    if None not in (label_names, FLAGS.labels) and label_names != FLAGS.labels:
        raise InputError(
            f"--labels={flag_text(FLAGS.labels)} are not the model's ({','.join(label_names)}); "
            "leave them out."
        )
    train = _read_labelled(FLAGS.train, label_names or FLAGS.labels)
    if not FLAGS.multi_label:
        _check_several(train.label_names)
    splits = read_splits(lambda path: _read_labelled(path, train.label_names), lambda _: train)
    if FLAGS.fold:
        splits["train"], splits["dev"] = text.split_fold(train, FLAGS.fold)
    return splits


def _check_several(labels):
    """Raise an InputError for one label alone in --train, for which others would be blamed."""
    if len(labels) == 1:
        raise InputError(
            f"train={FLAGS.train} has one label alone, {labels[0]!r}, so that there is nothing to "
            "tell apart; give examples of others too."
        )


def _read_labelled(path, label_names):
    if FLAGS.multi_label:
        columns = text.LabelColumns(
            FLAGS.text_column,
            FLAGS.pair_column,
            FLAGS.label_column,
            FLAGS.label_separator,
            tuple(FLAGS.label_columns or ()),
        )
        return text.read_label_sets(path, columns, label_names)
    label_names = label_names or FLAGS.label_columns
    if FLAGS.label_columns and {*FLAGS.label_columns} <= {*text.read_header(path)}:
        return _read_soft_labels(path, label_names)
    columns = FLAGS.text_column, FLAGS.pair_column, FLAGS.label_column
    return text.read_examples(path, *columns, label_names)


def _read_soft_labels(path, label_names):
    if {*label_names} != {*FLAGS.label_columns}:
        raise InputError(
            f"label_columns={flag_text(FLAGS.label_columns)} must be a column for each of the "
            f"labels, {','.join(label_names)}."
        )
    texts = FLAGS.text_column, FLAGS.pair_column
    examples = text.read_soft_labels(path, *texts, label_names)
    if FLAGS.probability_weight < 1:
        hard = text.read_examples(path, *texts, FLAGS.label_column, label_names)
        examples = text.mix_labels(examples, hard.labels, FLAGS.probability_weight)
    return examples


def _name_classes(unnamed):
    """Return names for a teacher's classes that its folder calls LABEL_0, LABEL_1, ..."""
    labels = set(_read_labelled(FLAGS.train, FLAGS.labels).label_names)
    if labels <= set(unnamed):
        return unnamed
    names = FLAGS.labels or [str(i) for i in range(len(unnamed))]
    if len(names) != len(unnamed) or not labels <= set(names):
        raise InputError(
            f"The {len(unnamed)} classes of teacher_dir={FLAGS.teacher_dir} have no names, and "
            f"those of train={FLAGS.train} are {', '.join(sorted(labels))}; give --labels, the "
            "names in the order of the teacher's classes."
        )
    warn_of_unnamed(names)
    return names


def warn_of_unnamed(names):
    """Warn which names are assumed for the classes of a teacher without label names."""
    logging.warning(
        "The teacher's classes have no names: %s are taken for them, in this order.",
        ", ".join(names),
    )
