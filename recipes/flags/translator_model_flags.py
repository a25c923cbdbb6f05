"""Initial model of a translator's training: loaded, a teacher's student, or from scratch."""

import dataclasses

from absl import flags, logging

import tfnlp
from distill import learning
from distill.learning.layer_map import LAYER_MAPS
from recipes.flags import dataclass_flags
from recipes.flags.model_flags import find_tokenizer
from recipes.shell.command_line import group, refuse_beside, refuse_without
from tfnlp import checkpoints, configs, generation, text
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
    flags.DEFINE_enum(
        "layer_map",
        "uniform",
        list(LAYER_MAPS),
        "Teacher layers to start from, with --teacher_dir.",
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
    if FLAGS.model_dir:
        refuse_beside(["teacher_dir"], f"model_dir={FLAGS.model_dir}")
    refuse_without(["layer_map"], "teacher_dir")
    sizes = {field.name for config in FAMILIES.values() for field in dataclasses.fields(config)}
    tokenizer = ("tokenizer_dir", "tokenizer", "vocabulary_size")
    for start, kept in (
        ("model_dir", set()),
        ("teacher_dir", {"num_layers", "num_decoder_layers", "dropout"}),
    ):
        if FLAGS[start].value:
            place = f"{start}={FLAGS[start].value}, which has its own"
            refuse_beside(sorted({"family", *tokenizer, *sizes - kept}), place)
            break
    else:
        family = FAMILIES[FLAGS.family or "transformer"]
        where = f"with family={FLAGS.family or 'transformer'}"
        dataclass_flags.refuse_others(family, FAMILIES.values(), where)
        if FLAGS.attention == "none":
            refuse_beside(["input_feeding"], "attention=none, which has nothing to feed")
        scratch_config()
    if FLAGS.tokenizer_dir:
        refuse_beside(tokenizer[1:], f"tokenizer_dir={FLAGS.tokenizer_dir}")


def make_model(texts):
    """Load or build the model of the flags; return it and its tokenizer.

    Args:
        texts: the source and target texts of the training set, to train a tokenizer on.
    """
    folder = FLAGS.model_dir or FLAGS.teacher_dir
    if not folder:
        tokenizer = find_tokenizer(_learn_tokenizer, texts)
        config = scratch_config(
            vocabulary_size=tokenizer.vocabulary_size,
            pad_token_id=tokenizer.pad_token_id,
            start_token_id=tokenizer.pad_token_id,
            end_token_id=generation.find_end_token(tokenizer),
        )
        return tfnlp.models.build_model(config, "sequence_to_sequence"), tokenizer
    model = checkpoints.load_model(folder, "sequence_to_sequence")
    if FLAGS.teacher_dir:
        sizes = FLAGS.num_layers, FLAGS.num_decoder_layers
        model = learning.make_translator_student(model, *sizes, FLAGS.layer_map, FLAGS.dropout)
    return model, text.load_tokenizer(folder)


def scratch_config(**tokens):
    """Return the config of the flags; `tokens` are its vocabulary size and special ids."""
    family = FLAGS.family or "transformer"
    fields = tokens | vars(dataclass_flags.read(FAMILIES[family]))
    if family == "transformer":
        fields["intermediate_dim"] = fields["intermediate_dim"] or 4 * fields["hidden_dim"]
        return configs.TransformerConfig(**fields, max_length=FLAGS.max_length)
    fields["attention"] = None if fields["attention"] == "none" else fields["attention"]
    return configs.RecurrentTranslatorConfig(**fields)


def _learn_tokenizer(texts):
    kind, size = FLAGS.tokenizer or "bpe", FLAGS.vocabulary_size or VOCABULARY_SIZE
    tokenizer, _ = text.train_tokenizer(texts, kind, size, TOKENIZERS[kind])
    logging.info("Learned %d tokens of both languages.", tokenizer.vocabulary_size)
    return tokenizer
