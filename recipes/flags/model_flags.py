"""Initial model of a training recipe: loaded from a folder, or from scratch."""

import functools
import pathlib

from absl import flags, logging

import tfnlp
from recipes.flags import dataclass_flags
from recipes.shell.command_line import flag_text, group, refuse_beside
from tfnlp import baselines, checkpoints, configs, knowledge, text, training
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
# Fields of the families without attention.
FAMILY_FIELDS = ("bidirectional", "channels", "word_ngrams")
SIZES = ("num_layers", "hidden_dim", "num_heads", "intermediate_dim", *FAMILY_FIELDS)
SIZES += ("predicted_words",)
VOCABULARY = ("vocabulary_size", "vocabulary_text")
VOCABULARY_SIZE = 8000
# Whole words, whose characters alone a model reads.
WORDS = 100_000


@group("Model")
def define_model_flag(file=""):
    """Define --model_dir, the model to start from; `file` is the help of what else it may be."""
    help = f"Folder of a model, or its name on Hugging Face's Hub{file}."
    flags.DEFINE_string("model_dir", None, help)
    flags.mark_flag_as_required("model_dir")


@group("Model")
def define_model_flags():
    """Define the flags of the model to start from, for recipes that train any family."""
    flags.DEFINE_string(
        "model_dir",
        None,
        "Folder or Hub name of the model to start from; random weights if not given.",
    )
    flags.DEFINE_integer(
        "block_size", None, "Tokens in a block of attention, for long inputs in less memory.", 1
    )
    define_scratch_flags()


@group("Model from scratch")
def define_scratch_flags():
    """Define the flags of a model that starts from random weights."""
    flags.DEFINE_string("family", None, "Family, such as bert, xlnet or lstm; bert if not given.")
    flags.DEFINE_string(
        "size",
        None,
        "Size by name, such as deberta_v3_small, of which --num_layers, --hidden_dim, --num_heads "
        "and --intermediate_dim change a part; if not given 4 layers of width 256 with 4 heads, "
        "inner width 4 * --hidden_dim; 2 of an rnn, lstm, gru.",
    )
    define_size_flags()
    dataclass_flags.define(configs.ElmoConfig, predicted_words=None)
    flags.DEFINE_string(
        "tokenizer_dir",
        None,
        "Folder of a tokenizer from train_tokenizer. If not given, a tokenizer of the family's "
        "kind is trained on the training texts; it lowercases as released models do (BERT and "
        "ALBERT, not XLNet and DeBERTa v3). Language models of families without a kind, such as "
        "recurrent networks, get byte-level BPE.",
    )
    flags.DEFINE_integer(
        "vocabulary_size",
        None,
        f"Largest vocabulary; {VOCABULARY_SIZE}, all words of --embeddings, or {WORDS} words of "
        "an ELMo, if not given.",
        10,
    )
    flags.DEFINE_string(
        "vocabulary_text", None, "File of further texts to train the tokenizer on."
    )


def define_size_flags(num_layers=None):
    """Define the flags of sizes that many families have."""
    sizes = dict.fromkeys(("hidden_dim", "num_heads", "intermediate_dim"))
    dataclass_flags.define(configs.TextConfig, num_layers=num_layers, **sizes)
    dataclass_flags.define(configs.RecurrentConfig, bidirectional=None)


@group("Model from scratch")
def define_pooling_flags():
    """Define the flags of a textcnn and a bag, which only a task trains."""
    dataclass_flags.define(configs.TextCnnConfig, channels=None)
    dataclass_flags.define(configs.BagConfig, word_ngrams=None)


@group("Model from scratch")
def define_embeddings_flag():
    """Define --embeddings, the vectors that the tokens of a model start from."""
    flags.DEFINE_string(
        "embeddings",
        None,
        "File of word vectors (word2vec's text or .bin format, GloVe's text) that the tokens of a "
        "textcnn, a bag or a recurrent network start from. Its words are the vocabulary, beside "
        "further ones of the training texts, unless --tokenizer_dir is given.",
    )


def check_start_flags():
    """Raise an InputError for conflicting flags of the model to start from."""
    if FLAGS.model_dir:
        names = ("family", "size", *SIZES, "tokenizer_dir", *VOCABULARY, "embeddings")
        names = filter(FLAGS.__contains__, names)
        refuse_beside(names, f"model_dir={FLAGS.model_dir}, whose model has its own")
        return
    scratch_config()
    if FLAGS.tokenizer_dir:
        place = f"tokenizer_dir={FLAGS.tokenizer_dir}, whose tokenizer has its own"
        refuse_beside(VOCABULARY, place)


def scratch_config(sizes=SIZES, **fields):
    """Return the config of --family, --size and the flags of sizes.

    Raises:
        InputError: if a name is unknown, or sizes do not fit each other.
    """
    fields |= {name: FLAGS[name].value for name in sizes if name in FLAGS}
    if vectors := word_vectors():
        fields["hidden_dim"] = _vector_width(vectors)
    config = configs.config_by_name(FLAGS.family, FLAGS.size, **fields)
    if config.language_model == "sequence_to_sequence":
        name = "family" if FLAGS.family else "size"
        raise InputError(f"{name}={FLAGS[name].value} is of a translator; see train_translator.")
    if not vectors and getattr(config, "channels", None) in ("static", "multichannel"):
        raise InputError(
            f"channels={config.channels} keeps word vectors as they start; give them by "
            "--embeddings."
        )
    return config


def check_head(task, sizes=SIZES):
    """Raise an InputError if the family of the flags cannot have a task's head."""
    configs.check_head(scratch_config(sizes), task.kind.head, task.num_classes or 1)


def word_vectors():
    """Return the `WordVectors` of --embeddings, or None if it is not given."""
    return _load_vectors(FLAGS.embeddings) if "embeddings" in FLAGS and FLAGS.embeddings else None


@functools.cache
def _load_vectors(path):
    return baselines.WordVectors.load(path)


def _vector_width(vectors):
    if configs.config_by_name(FLAGS.family, FLAGS.size).attends:
        raise InputError(
            f"embeddings={FLAGS.embeddings} has no effect on a transformer; give --family, such "
            "as textcnn, bag or lstm, or leave it out."
        )
    width = vectors.vectors.shape[1]
    if FLAGS.hidden_dim not in (None, width):
        raise InputError(
            f"hidden_dim={FLAGS.hidden_dim} is not {width}, the width of the vectors of "
            f"embeddings={FLAGS.embeddings}; leave it out."
        )
    return width


def make_model(task, texts):
    """Load or build the model of the flags, with the task's head; return it and its tokenizer.

    Args:
        task: see `tfnlp.tasks`.
        texts: the training texts, to train a tokenizer on.

    Raises:
        InputError: if flags conflict, or if `load_model`, `config_by_name` or `train_tokenizer`
            raises one.
    """
    if FLAGS.model_dir:
        tokenizer = knowledge.load_entity_tokenizer(FLAGS.model_dir)
        model = checkpoints.load_model(
            FLAGS.model_dir, task.kind.head, task.num_classes, **_build_options()
        )
        return model, tokenizer
    config, tokenizer = _from_scratch(lambda: texts)
    model = tfnlp.models.build_model(config, task.kind.head, task.num_classes, **_build_options())
    start_embeddings(model, tokenizer, texts)
    return model, tokenizer


def _build_options():
    """Return the options of `build_model` that the flags have."""
    options = {"block_size": FLAGS.block_size}
    return options | ({"vectors": _vector_head()} if "pooling" in FLAGS else {})


def _vector_head():
    """Return the `VectorHead` of --model_dir, else that of --pooling or the default one."""
    stored = FLAGS.model_dir and checkpoints.read_vector_head(FLAGS.model_dir)
    if stored and FLAGS.pooling and stored.pooling != tuple(FLAGS.pooling):
        raise InputError(
            f"pooling={flag_text(FLAGS.pooling)} is not the pooling of "
            f"model_dir={FLAGS.model_dir}, {','.join(stored.pooling)}; leave it out."
        )
    return stored or pooling_head() or configs.VectorHead()


def pooling_head():
    """Return the `VectorHead` of --pooling, or None if it is not given."""
    return configs.VectorHead(tuple(FLAGS.pooling)) if FLAGS.pooling else None


def start_embeddings(model, tokenizer, texts):
    """Start a model's token vectors from --embeddings, if given, and log how many of them."""
    vectors = word_vectors()
    if vectors is None:
        return
    ids = tfnlp.models.start_from_vectors(model, tokenizer, vectors, FLAGS.seed)
    logging.info(
        "%d of %d tokens start from %s, %.1f %% of all tokens of the training texts.",
        len(ids),
        tokenizer.vocabulary_size,
        FLAGS.embeddings,
        100 * tfnlp.models.share_of_tokens(tokenizer, ids, texts),
    )


def read_start(read_texts, writes=False):
    """Return the config and the tokenizer of the flags: those of --model_dir, or new ones.

    Args:
        read_texts: a function that returns the training texts, to train a tokenizer on.
        writes: whether the model generates text, so that the tokenizer must keep capitals and
            line breaks.

    Raises:
        InputError: as in `make_model`.
    """
    if not FLAGS.model_dir:
        return _from_scratch(read_texts, writes)
    tokenizer = knowledge.load_entity_tokenizer(FLAGS.model_dir)
    return checkpoints.read_config(FLAGS.model_dir), tokenizer


def _from_scratch(read_texts, writes=False):
    family = scratch_config().model_type
    tokenizer = find_tokenizer(_learn_tokenizer, family, read_texts, writes)
    if FLAGS.tokenizer_dir:
        text.check_tokenizer_family(FLAGS.tokenizer_dir, family, tokenizer.family)
    fields = {"vocabulary_size": tokenizer.vocabulary_size, "pad_token_id": tokenizer.pad_token_id}
    config = scratch_config(**fields)
    if config.max_length is not None:
        config = scratch_config(**fields, max_length=max(config.max_length, FLAGS.max_length))
    logging.info(
        "A %s of %d layers of width %d starts from random weights, with %d tokens.",
        family,
        config.num_layers,
        config.hidden_dim,
        config.vocabulary_size,
    )
    return config, tokenizer


def find_tokenizer(learn, *arguments):
    """Return the tokenizer of --tokenizer_dir or of a resumed run, or else `learn(*arguments)`."""
    if FLAGS.tokenizer_dir:
        return text.load_tokenizer(FLAGS.tokenizer_dir)
    kept = pathlib.Path(FLAGS.output_dir) / training.TOKENIZER
    if kept.exists() and not FLAGS.overwrite:
        return text.load_tokenizer(kept)
    return learn(*arguments)


def _learn_tokenizer(family, read_texts, writes):
    """Train a tokenizer of the family's kind."""
    texts = read_texts()
    if FLAGS.vocabulary_text:
        texts = texts + text.read_examples(FLAGS.vocabulary_text, label_column=None).texts
    if vectors := word_vectors():
        return text.word_tokenizer(vectors.words, texts, FLAGS.vocabulary_size)
    kind = text.kind_for(family)
    size = FLAGS.vocabulary_size or (WORDS if kind == "words" else VOCABULARY_SIZE)
    if kind != "wordpiece":
        return text.train_tokenizer(texts, kind, size, family)[0]
    if writes and family in text.ANY_TOKENIZER:  # WordPiece loses capitals and line breaks
        return text.train_tokenizer(texts, "bpe", size, "gpt2")[0]
    return text.train_tokenizer(texts, kind, size)[0]


def keep_tokenizer(run, tokenizer):
    """Make a run save the tokenizer trained for it, if any, so that the run can resume."""
    folders = ("model_dir", "teacher_dir", "tokenizer_dir")
    if not any(FLAGS[name].value for name in folders if name in FLAGS):
        run.tokenizer = tokenizer


def load_with_tokenizer(folder):
    """Return a folder's model and tokenizer; raise an InputError if they do not fit."""
    tokenizer = tfnlp.text.load_tokenizer(folder)
    model = checkpoints.load_model(folder, checkpoints.read_head(folder))
    tfnlp.models.check_vocabulary(tokenizer, model)
    return model, tokenizer


def check_fit(model, tokenizer):
    """Raise an InputError unless the vocabulary and --max_length fit the model."""
    tfnlp.models.check_vocabulary(tokenizer, model)
    positions = tfnlp.models.max_positions(model)
    if positions is not None and FLAGS.max_length > positions:
        raise InputError(
            f"--max_length={FLAGS.max_length} is above the model's {positions} positions."
        )
