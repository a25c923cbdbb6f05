"""Initial model of a translator's training: loaded, a teacher's student, or from scratch."""

from absl import flags, logging

import tfnlp
from distill import learning
from distill.learning.layer_map import LAYER_MAPS
from recipes.flags import dataclass_flags
from recipes.flags.model_flags import find_tokenizer
from recipes.shell.command_line import group, refuse_beside, refuse_without
from tfnlp import checkpoints, configs, generation, text

FLAGS = flags.FLAGS


FAMILIES = {
    "transformer": configs.TransformerConfig,
    "recurrent": configs.RecurrentTranslatorConfig,
}
# Sizes of a model from scratch.
SIZES = {
    "transformer": {
        "num_layers": 4,
        "num_decoder_layers": None,
        "hidden_dim": 128,
        "num_heads": 4,
        "intermediate_dim": None,
        "dropout": 0.3,
        "norm_first": True,
    },
    "recurrent": {
        "cell": "gru",
        "num_layers": 1,
        "hidden_dim": 256,
        "dropout": 0.3,
        "attention": "general",
        "input_feeding": True,
        "bidirectional": True,
        "reverse_source": False,
    },
}
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
        "family",
        None,
        list(FAMILIES),
        "Family of the model; transformer if not given, of an inner width of 4 * --hidden_dim.",
    )
    dataclass_flags.define_choice(FAMILIES, SIZES)
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
    sizes = set().union(*SIZES.values())
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
        family = FLAGS.family or "transformer"
        where = f"with family={family}"
        dataclass_flags.refuse_others(SIZES[family], SIZES.values(), where)
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
    fields = SIZES[family] | dataclass_flags.given(FAMILIES[family]) | tokens
    if family == "transformer":
        fields["intermediate_dim"] = fields["intermediate_dim"] or 4 * fields["hidden_dim"]
    return FAMILIES[family](**fields)


def _learn_tokenizer(texts):
    kind, size = FLAGS.tokenizer or "bpe", FLAGS.vocabulary_size or VOCABULARY_SIZE
    tokenizer, _ = text.train_tokenizer(texts, kind, size, TOKENIZERS[kind])
    logging.info("Learned %d tokens of both languages.", tokenizer.vocabulary_size)
    return tokenizer
