"""Initial model of a translator's training: loaded, from a teacher's layers, or from scratch."""

from absl import flags, logging

import tfnlp
from distill import learning
from recipes.command_line import group, refuse_beside
from recipes.model_flags import kept_tokenizer
from tfnlp import checkpoints, generation, text
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
# Config fields with a flag of the same name, and their defaults for a model from scratch.
TRANSFORMER = {
    "num_layers": 4,
    "num_decoder_layers": None,
    "hidden_dim": 128,
    "num_heads": 4,
    "intermediate_dim": None,
    "dropout": 0.3,
    "norm_first": True,
}
RECURRENT = {
    "cell": "gru",
    "num_layers": 1,
    "hidden_dim": 256,
    "dropout": 0.3,
    "attention": "general",
    "input_feeding": True,
    "bidirectional": True,
    "reverse_source": False,
}
OF_FAMILY = {"transformer": TRANSFORMER, "recurrent": RECURRENT}
# The families whose special tokens the trained tokenizers use. Both keep case.
TOKENIZERS = {"bpe": "roberta", "unigram": "marian"}
VOCABULARY_SIZE = 8000
TOKENIZER_FLAGS = ("tokenizer_dir", "tokenizer", "vocabulary_size")


@group("Model")
def define_model_flags():
    """Define the flags of the model to start from."""
    flags.DEFINE_string(
        "model_dir",
        None,
        "Folder of a translator to go on from, such as a Marian, or its name on Hugging Face's "
        "Hub; from scratch if not given.",
    )
    flags.DEFINE_string(
        "teacher_dir",
        None,
        "Folder of a Transformer whose layers the student starts from; --num_layers and "
        "--num_decoder_layers are then the student's, and all else the teacher's. --train is "
        "what `translate` wrote with it.",
    )
    flags.DEFINE_string(
        "layer_map",
        "uniform",
        "Which of the teacher's layers: uniform, last, first or alternate. With --teacher_dir.",
    )


@group("Model from scratch")
def define_scratch_flags():
    """Define the flags of a model that starts from random weights."""
    flags.DEFINE_enum(
        "family", None, list(OF_FAMILY), "Family of the model; transformer if not given."
    )
    flags.DEFINE_integer("num_layers", None, "Layers of the encoder; 4, or 1 if recurrent.", 1)
    flags.DEFINE_integer(
        "num_decoder_layers", None, "Layers of a Transformer's decoder; as many if not given.", 1
    )
    flags.DEFINE_integer("hidden_dim", None, "Width; 128, or 256 if recurrent.", 1)
    flags.DEFINE_integer("num_heads", None, "Attention heads of a Transformer; 4 if not given.", 1)
    flags.DEFINE_integer(
        "intermediate_dim",
        None,
        "Inner width of a Transformer's feed-forward networks; four times --hidden_dim if not "
        "given.",
        1,
    )
    flags.DEFINE_float("dropout", None, "Dropout; 0.3 if not given.", 0, 1)
    flags.DEFINE_bool(
        "norm_first",
        None,
        "Whether a Transformer normalises before each sub-layer, as if not given, or after it, as "
        "the paper's does.",
    )
    flags.DEFINE_enum(
        "cell", None, ["gru", "lstm", "rnn"], "Cell of a recurrent model; gru if not given."
    )
    flags.DEFINE_enum(
        "attention",
        None,
        ["general", "dot", "concat", "none"],
        "Score of a recurrent model's attention (Luong et al. 2015, eq. 8); general if not given. "
        "none: the encoder's last state alone, as a control.",
    )
    flags.DEFINE_bool(
        "input_feeding", None, "Whether its decoder reads what it attended to; so if not given."
    )
    flags.DEFINE_bool(
        "bidirectional", None, "Whether its encoder reads from both ends; so if not given."
    )
    flags.DEFINE_bool(
        "reverse_source", None, "Whether an encoder of one direction reads from the end."
    )
    flags.DEFINE_string(
        "tokenizer_dir",
        None,
        "Folder of a tokenizer of both languages, as train_tokenizer writes it; learned from "
        "--train if not given.",
    )
    flags.DEFINE_enum(
        "tokenizer", None, list(TOKENIZERS), "Kind of tokenizer to learn; bpe if not given."
    )
    flags.DEFINE_integer(
        "vocabulary_size", None, f"The most tokens to learn; {VOCABULARY_SIZE} if not given.", 10
    )


def check_flags():
    """Raise an InputError for conflicting flags of the model."""
    scratch = {flag for fields in OF_FAMILY.values() for flag in fields} | {"family"}
    if FLAGS.model_dir and FLAGS.teacher_dir:
        raise InputError("Give `model_dir` or `teacher_dir`, not both: a model has one start.")
    if FLAGS.model_dir:
        given = f"model_dir={FLAGS.model_dir}, which has its own"
        refuse_beside(sorted([*scratch, *TOKENIZER_FLAGS]), given)
    elif FLAGS.teacher_dir:
        given = f"teacher_dir={FLAGS.teacher_dir}, which has its own"
        own = {"num_layers", "num_decoder_layers", "dropout"}
        refuse_beside(sorted([*(scratch - own), *TOKENIZER_FLAGS]), given)
    else:
        family = FLAGS.family or "transformer"
        others = scratch - {"family"} - OF_FAMILY[family].keys()
        refuse_beside(sorted(others), f"family={family}, which has none")
        if FLAGS.attention == "none":
            refuse_beside(["input_feeding"], "attention=none, which has nothing to feed")
    if FLAGS["layer_map"].present and not FLAGS.teacher_dir:
        raise InputError(f"layer_map={FLAGS.layer_map} has no effect without a `teacher_dir`.")
    if FLAGS.tokenizer_dir:
        refuse_beside(("tokenizer", "vocabulary_size"), f"tokenizer_dir={FLAGS.tokenizer_dir}")


def make_model(texts):
    """Load or build the model of the flags; return it and its tokenizer.

    Args:
        texts: the source and target texts of the training set, to train a tokenizer on.
    """

    if FLAGS.model_dir:
        model = checkpoints.load_model(FLAGS.model_dir, "sequence_to_sequence")
        return model, text.load_tokenizer(FLAGS.model_dir)
    if FLAGS.teacher_dir:
        teacher = checkpoints.load_model(FLAGS.teacher_dir, "sequence_to_sequence")
        sizes = FLAGS.num_layers, FLAGS.num_decoder_layers
        student = learning.make_translator_student(teacher, *sizes, FLAGS.layer_map, FLAGS.dropout)
        return student, text.load_tokenizer(FLAGS.teacher_dir)
    tokenizer = _tokenizer(texts)
    config = _config(tokenizer)
    return tfnlp.models.build_model(config, "sequence_to_sequence"), tokenizer


def _config(tokenizer):
    """Return the config of the flags, with a tokenizer's vocabulary size and special ids."""

    family = FLAGS.family or "transformer"
    fields = {
        name: default if FLAGS[name].value is None else FLAGS[name].value
        for name, default in OF_FAMILY[family].items()
    }
    if family == "transformer":
        fields["intermediate_dim"] = FLAGS.intermediate_dim or 4 * fields["hidden_dim"]
        fields["max_length"] = FLAGS.max_length
        kind = tfnlp.models.TransformerConfig
    else:
        fields["attention"] = None if fields["attention"] == "none" else fields["attention"]
        kind = tfnlp.models.RecurrentTranslatorConfig
    return kind(
        **fields,
        vocabulary_size=tokenizer.vocabulary_size,
        pad_token_id=tokenizer.pad_token_id,
        start_token_id=tokenizer.pad_token_id,
        end_token_id=generation.find_end_token(tokenizer),
    )


def _tokenizer(texts):
    """Load the tokenizer of --tokenizer_dir or of a resumed run, or train one."""

    if FLAGS.tokenizer_dir:
        return text.load_tokenizer(FLAGS.tokenizer_dir)
    if kept := kept_tokenizer():
        return kept
    kind, size = FLAGS.tokenizer or "bpe", FLAGS.vocabulary_size or VOCABULARY_SIZE
    tokenizer, _ = text.train_tokenizer(texts, kind, size, TOKENIZERS[kind])
    logging.info("Learned %d tokens of both languages.", tokenizer.vocabulary_size)
    return tokenizer


def learned_tokenizer():
    """Return whether the run's tokenizer is trained on its texts."""
    return not (FLAGS.model_dir or FLAGS.teacher_dir or FLAGS.tokenizer_dir)
