"""Loading and training of tokenizers of any kind."""

import numpy as np
import tokenizers

from tfnlp.families import FAMILIES, MODEL_TYPES
from tfnlp.text.tokenizers.byte_fallback_bpe import ByteFallbackBpeTokenizer
from tfnlp.text.tokenizers.byte_level_bpe import (
    ByteLevelBpeTokenizer,
    train_byte_level_bpe,
    train_characters,
)
from tfnlp.text.tokenizers.keras_hub_tokenizer import ASSETS, is_preset, read_preset_tokenizer
from tfnlp.text.tokenizers.marian import read_marian
from tfnlp.text.tokenizers.special_tokens import CLASSES, SPECIAL_TOKENS
from tfnlp.text.tokenizers.spelling import SpellingTokenizer, train_words
from tfnlp.text.tokenizers.tokenizer_files import (
    BY_FILE,
    FILES,
    check_tokenizer_family,
    engine_kind,
    foreign_static,
    is_by_file,
    named_class,
    read_family,
)
from tfnlp.text.tokenizers.unframed import UnframedTokenizer
from tfnlp.text.tokenizers.unigram import (
    MODEL_FILES,
    UnigramTokenizer,
    train_unigram,
)
from tfnlp.text.tokenizers.wordpiece import WordPieceTokenizer, train_wordpiece
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json
from tfnlp.utils.hub import find_folder

# The families of each kind of tokenizer, by their names in config.json, the default first.
KINDS = {
    kind: tuple(f.model_type for f in FAMILIES.values() if f.tokenizer == kind and f.names)
    for kind in ("wordpiece", "bpe", "unigram")
}
KINDS |= {"characters": ("gpt2", "roberta", "deberta"), "words": ("elmo", "bert")}
# The kinds by the model in a tokenizer.json.
KINDS_OF_ENGINES = {"WordPiece": "wordpiece", "BPE": "bpe", "Unigram": "unigram"}
# Classes that say nothing of the kind.
GENERAL_CLASSES = {
    *("None", *BY_FILE, "AutoTokenizer", "BasicTokenizer"),
    *("PegasusTokenizer", "OpenAIGPTTokenizer", "TransfoXLTokenizer", "GemmaTokenizer"),
}
# Texts that tokenizers of different kinds and settings read differently.
PROBES = (
    *(
        "",
        "The Quick, naïve e\u0301 don't... (ABC-12) 3.5%",
        "정말 재미있는 영화 ㅋㅋ 漢字かな",
        *("a" * 100, "a" * 101),
    ),
    *("  two  spaces\tand\na line ", "``quoted'' ½ ﬁ İ 😀 \u00a0\u200b\x07", "www.x_y.com/#@$ ÀÉ"),
)
# The files to download for a model on the Hub.
FETCHED = ("config.json", "modules.json", "*_StaticEmbedding/*", *FILES, f"{ASSETS}/*")


def load_tokenizer(folder):
    """Load the tokenizer of a checkpoint folder, or of a model on the Hugging Face Hub.

    The kind follows the class in tokenizer_config.json (or config.json), whatever the family of
    the model; without one that says it, the files: a vocab.txt is WordPiece, and a tokenizer.json
    is that of the family whose special tokens it has. A keras-hub preset names its own class.

    Args:
        folder: the folder of the tokenizer's files; or a name on the Hub, as `name` or
            `name@revision`.

    Returns:
        A `WordPieceTokenizer`, `SpellingTokenizer`, `ByteLevelBpeTokenizer`,
        `ByteFallbackBpeTokenizer` or `UnigramTokenizer`; a `MarianTokenizer` for a pair of
        different SentencePiece models.

    Raises:
        TypeError: if `folder` is neither a path nor a name.
        InputError: if its files are missing, broken, or of a kind of tokenizer that tfnlp lacks,
            or the model cannot read the tokenizer.
    """
    folder = find_folder(folder, FETCHED)
    if is_preset(folder):
        return read_preset_tokenizer(folder)
    if static := foreign_static(folder):
        return UnframedTokenizer.from_folder(static)
    name, model_family = _tokenizer_class(folder), read_family(folder)
    if name in BY_FILE and model_family == "static":
        return UnframedTokenizer.from_folder(folder)
    if model_family == "knowledge_bert":
        raise InputError(
            f"{folder}: the model reads entities beside the tokens, which only fine-tuning, "
            "predictions and `tfnlp.knowledge.load_entity_tokenizer` can give; give another."
        )
    family = CLASSES.get(name) or _family_of_files(folder, model_family)
    if model_family == "elmo":  # which reads characters, from its own tokenizer alone
        family = model_family
    check_tokenizer_family(folder, model_family, family)
    tokenizer, path = _load(folder, family), folder / "tokenizer.json"
    if path.exists() and is_by_file(folder, family):
        _check_reads_alike(path, tokenizer)
    return tokenizer


def _tokenizer_class(folder):
    """Return the class that a folder names, without "Fast"; "None" without one.

    Raises:
        InputError: if tfnlp has no such class.
    """
    name, path = named_class(folder)
    name = str(name)
    if name not in {*CLASSES, *GENERAL_CLASSES}:
        raise InputError(
            f"{path}: tfnlp has no {name}, whose words another tokenizer would not find; give a "
            "folder with a tokenizer of another class."
        )
    return name


def _family_of_files(folder, model_family):
    """Return the family of the tokenizer whose files a folder has."""
    if (folder / "vocab.txt").exists():  # as only WordPiece has it, in models of many families
        return "bert"
    if (folder / "tokenizer.json").exists():
        return _family_of_engine(folder / "tokenizer.json", model_family)
    for family in ("marian", "xlm-roberta"):
        if (folder / MODEL_FILES[family]).exists():
            return family
    return model_family or "bert"


def _family_of_engine(path, model_family):
    """Return the family whose special tokens a tokenizer.json has, the model's before others.

    Raises:
        InputError: if there is none, or its model is of a kind that tfnlp lacks.
    """
    content = read_json(path)
    kind = KINDS_OF_ENGINES.get(engine_kind(content))
    if kind is None:
        raise InputError(
            f"{path} holds a model of the kind {engine_kind(content)}, which tfnlp does not read; "
            f"give a tokenizer of the kind {', '.join(KINDS_OF_ENGINES)}."
        )
    if kind == "bpe" and content["model"].get("byte_fallback"):
        return ByteFallbackBpeTokenizer.family
    pieces = content["model"]["vocab"]
    tokens = {piece if isinstance(piece, str) else piece[0] for piece in pieces}
    tokens |= {token["content"] for token in content.get("added_tokens") or []}
    special = {
        family: {*SPECIAL_TOKENS[family].tokens.values()} - {"[MASK]"}  # may be added later
        for family in KINDS[kind]
        if family in SPECIAL_TOKENS and family != "marian"  # which has no tokenizer.json
    }
    fitting = [family for family, needed in special.items() if needed <= tokens]
    if not fitting:
        raise InputError(
            f"{path} has the special tokens of no family: "
            + "; ".join(f"{family} needs {', '.join(sorted(x))}" for family, x in special.items())
            + "."
        )
    # XLNet's tokens are among them all of XLM-R's.
    return max(fitting, key=lambda family: (family == model_family, len(special[family])))


def _load(folder, family):
    """Load the tokenizer of a family."""
    if family == "elmo":
        return SpellingTokenizer.from_folder(folder)
    if family in KINDS["wordpiece"]:
        return WordPieceTokenizer.from_folder(folder)
    if family == ByteFallbackBpeTokenizer.family:
        return ByteFallbackBpeTokenizer.from_folder(folder)
    if family in KINDS["bpe"]:
        return ByteLevelBpeTokenizer.from_folder(folder, family)
    if family == "marian":
        return read_marian(folder)
    if family in KINDS["unigram"]:
        return UnigramTokenizer.from_folder(folder, family)
    raise InputError(f"{folder}: there is no tokenizer for the family {family!r}.")


def _check_reads_alike(path, tokenizer):
    """Raise an `InputError` if a tokenizer.json gives other ids than the tokenizer of its kind."""
    engine = tokenizers.Tokenizer.from_file(str(path))
    engine.no_truncation()
    engine.no_padding()
    words = [tokenizer.token(i) or "" for i in range(0, tokenizer.vocabulary_size, 97)]
    known = " ".join(word.strip("#▁Ġ") for word in words if word.isalpha())
    for text in (*PROBES, known):
        (single,), (pair,) = tokenizer.encode([text]), tokenizer.encode([text], ["a b"])
        for ours, theirs in ((single, engine.encode(text)), (pair, engine.encode(text, "a b"))):
            if (ours.token_ids, ours.segment_ids) != (theirs.ids, theirs.type_ids):
                raise InputError(
                    f"{path} reads {text[:40]!r} as {theirs.tokens[:12]}, which no tokenizer of "
                    f"tfnlp does ({type(tokenizer).__name__}: {_tokens(tokenizer, ours)[:12]}); "
                    "give a folder whose tokenizer_class is that of a family."
                )


def _tokens(tokenizer, encoding):
    return [tokenizer.token(i) for i in encoding.token_ids]


def kind_for(family):
    """Return the kind of tokenizer for a model family, by its name in config.json.

    WordPiece works with any family. It also replaces the original kinds of GPT and Transformer-XL,
    which tfnlp lacks.
    """
    return getattr(MODEL_TYPES.get(family), "tokenizer", None) or "wordpiece"


def train_tokenizer(texts, kind, vocabulary_size, family=None, lowercase=None, keep_accents=None):
    """Train a tokenizer on texts.

    Args:
        texts: a list of strings.
        kind: "wordpiece", "bpe", "unigram", "characters" or "words".
        vocabulary_size: the maximum vocabulary size.
        family: the family of the special tokens; where None, "bert", "roberta", "albert", "gpt2"
            or "elmo" by kind.
        lowercase: whether WordPiece and unigram lowercase; where None, as the family's released
            models (WordPiece and ALBERT do, XLNet and DeBERTa v2 and v3 do not).
        keep_accents: as in `train_unigram`, of ALBERT and XLNet alone.

    Returns:
        The tokenizer, and the family.

    Raises:
        InputError: if the family has another kind of tokenizer or no choice of accents, or the
            size is too small.
    """
    family = family_of_kind(kind, family)
    if keep_accents is not None and family not in ("albert", "xlnet"):
        raise InputError(
            f"keep_accents is of the families albert and xlnet, not of {family}; leave it out."
        )
    if kind == "wordpiece":
        return train_wordpiece(texts, vocabulary_size, lowercase is not False), family
    if kind == "unigram":
        return train_unigram(texts, vocabulary_size, family, lowercase, keep_accents), family
    if kind == "words":
        return train_words(texts, vocabulary_size, family), family
    train = train_characters if kind == "characters" else train_byte_level_bpe
    return train(texts, vocabulary_size, family), family


def family_of_kind(kind, family=None):
    """Return the family of the special tokens, checked against the kind of `train_tokenizer`."""
    families = KINDS[kind]
    family = family or families[0]
    if family not in families:
        raise InputError(
            f"family={family} has no tokenizer of kind={kind}; use one of {', '.join(families)}."
        )
    return family


def tokenizer_statistics(tokenizer, texts):
    """Return how well a tokenizer fits texts.

    Returns:
        The mean number of tokens in a word (split at white space), and the share of unknown
        tokens.
    """
    encodings = tokenizer.encode(texts)
    frames = len(tokenizer.encode([""])[0].token_ids) * len(encodings)
    tokens = len(encodings.token_ids) - frames
    unknown = np.count_nonzero(encodings.token_ids == tokenizer.unknown_token_id)
    words = sum(len(text.split()) for text in texts)
    return tokens / max(words, 1), unknown / max(tokens, 1)
