"""Initial model of a translator's training: loaded, a teacher's student, or from scratch."""

import dataclasses

from absl import flags, logging

import tfnlp
from distill import learning
from recipes import dataclass_flags
from recipes.command_line import group, refuse_beside
from recipes.model_flags import kept_tokenizer
from tfnlp import checkpoints, generation, text
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import setting

FLAGS = flags.FLAGS


@dataclasses.dataclass(frozen=True)
class Transformer:
    """Sizes of a Transformer from scratch."""

    num_layers: int = setting(4, "Layers of the encoder.", low=1)
    num_decoder_layers: int | None = setting(
        None, "Layers of the decoder; those of the encoder if not given.", low=1
    )
    hidden_dim: int = setting(128, "Width.", low=1)
    num_heads: int = setting(4, "Attention heads.", low=1)
    intermediate_dim: int | None = setting(
        None,
        "Inner width of the feed-forward networks; four times --hidden_dim if not given.",
        low=1,
    )
    dropout: float = setting(0.3, "Dropout rate.", low=0, high=1)
    norm_first: bool = setting(
        True, "Normalise before each sub-layer, not after it as in the paper."
    )


@dataclasses.dataclass(frozen=True)
class Recurrent:
    """Sizes of a recurrent translator from scratch."""

    cell: str = setting("gru", "Cell.", choices=("gru", "lstm", "rnn"))
    num_layers: int = setting(1, "Layers of the encoder.", low=1)
    hidden_dim: int = setting(256, "Width.", low=1)
    dropout: float = setting(0.3, "Dropout rate.", low=0, high=1)
    attention: str = setting(
        "general",
        "Attention scores (Luong et al. 2015, eq. 8). none: the decoder only starts from the "
        "encoder's last state.",
        choices=("general", "dot", "concat", "none"),
    )
    input_feeding: bool = setting(True, "Feed the attention vector to the decoder.")
    bidirectional: bool = setting(True, "Read from both ends in the encoder.")
    reverse_source: bool = setting(
        False, "Read the source backwards in an encoder of one direction."
    )


FAMILIES = {"transformer": Transformer, "recurrent": Recurrent}
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
        "Folder of a translator to start from, such as a Marian, or its name on Hugging Face's "
        "Hub; random weights if not given.",
    )
    flags.DEFINE_string(
        "teacher_dir",
        None,
        "Folder of a Transformer as teacher. The student starts from its layers; --num_layers and "
        "--num_decoder_layers are the student's, all other sizes the teacher's. --train has the "
        "translations that `translate` wrote with the teacher.",
    )
    flags.DEFINE_string(
        "layer_map",
        "uniform",
        "Teacher layers to start from: uniform, last, first or alternate. With --teacher_dir.",
    )


@group("Model from scratch")
def define_scratch_flags():
    """Define the flags of a model that starts from random weights."""
    flags.DEFINE_enum(
        "family", None, list(FAMILIES), "Family of the model; transformer if not given."
    )
    dataclass_flags.define_choice(FAMILIES)
    flags.DEFINE_string(
        "tokenizer_dir",
        None,
        "Folder of a tokenizer of both languages from train_tokenizer; trained on --train if not "
        "given.",
    )
    flags.DEFINE_enum(
        "tokenizer", None, list(TOKENIZERS), "Kind of tokenizer to train; bpe if not given."
    )
    flags.DEFINE_integer(
        "vocabulary_size", None, f"Largest vocabulary; {VOCABULARY_SIZE} if not given.", 10
    )


def check_flags():
    """Raise an InputError for conflicting flags of the model."""
    sizes = {field.name for config in FAMILIES.values() for field in dataclasses.fields(config)}
    if FLAGS.model_dir and FLAGS.teacher_dir:
        raise InputError("Give `model_dir` or `teacher_dir`, not both: a model has one start.")
    if FLAGS.model_dir:
        where = f"model_dir={FLAGS.model_dir}, which has its own"
        refuse_beside(sorted({"family", *sizes, *TOKENIZER_FLAGS}), where)
    elif FLAGS.teacher_dir:
        where = f"teacher_dir={FLAGS.teacher_dir}, which has its own"
        sizes -= {"num_layers", "num_decoder_layers", "dropout"}
        refuse_beside(sorted({"family", *sizes, *TOKENIZER_FLAGS}), where)
    else:
        family = FLAGS.family or "transformer"
        where = f"with family={family}"
        dataclass_flags.refuse_others(FAMILIES[family], FAMILIES.values(), where)
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
    fields = dataclasses.asdict(dataclass_flags.read(FAMILIES[family]))
    if family == "transformer":
        fields["intermediate_dim"] = fields["intermediate_dim"] or 4 * fields["hidden_dim"]
        fields["max_length"] = FLAGS.max_length
        config = tfnlp.models.TransformerConfig
    else:
        fields["attention"] = None if fields["attention"] == "none" else fields["attention"]
        config = tfnlp.models.RecurrentTranslatorConfig
    return config(
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
