"""Loading and training of tokenizers of any kind."""

import numpy as np
import tokenizers

from tfnlp.families import FAMILIES, MODEL_TYPES
from tfnlp.text.tokenizers import wordpiece
from tfnlp.text.tokenizers.byte_level_bpe import (
    ByteLevelBpeTokenizer,
    train_byte_level_bpe,
    train_characters,
)
from tfnlp.text.tokenizers.keras_hub_tokenizer import ASSETS, is_preset, read_preset_tokenizer
from tfnlp.text.tokenizers.marian import read_marian
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS
from tfnlp.text.tokenizers.spelling import SpellingTokenizer, train_words
from tfnlp.text.tokenizers.tokenizer_files import ANY_TOKENIZER, FILES, read_family, read_settings
from tfnlp.text.tokenizers.unigram import UnigramTokenizer, train_unigram
from tfnlp.text.tokenizers.wordpiece import WordPieceTokenizer, train_wordpiece
from tfnlp.utils.errors import InputError
from tfnlp.utils.hub import find_folder

# The families of each kind of tokenizer, by their names in config.json, the default first.
KINDS = {
    kind: tuple(f.model_type for f in FAMILIES.values() if f.tokenizer == kind and f.names)
    for kind in ("wordpiece", "bpe", "unigram")
}
KINDS |= {"characters": ("gpt2", "roberta", "deberta"), "words": ("elmo", "bert")}
# The families of the other tokenizer classes in tokenizer_config.json.
OTHER_CLASSES = {
    tokens.tokenizer_class: family for family, tokens in SPECIAL_TOKENS.items() if family != "bert"
}
# Classes that say nothing of the kind, or whose family tells it. Names are without "Fast".
GENERAL_CLASSES = {
    *("None", "PreTrainedTokenizer", "TokenizersBackend", "AutoTokenizer", "BasicTokenizer"),
    *("PegasusTokenizer", "OpenAIGPTTokenizer", "TransfoXLTokenizer"),
}
# Classes that are their tokenizer.json alone, whatever the family.
BY_FILE = {"PreTrainedTokenizer", "TokenizersBackend"}
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
FETCHED = ("config.json", *FILES, f"{ASSETS}/*")


def load_tokenizer(folder):
    """Load the tokenizer of a checkpoint folder, or of a model on the Hugging Face Hub.

    The kind follows the class in tokenizer_config.json and the family in config.json; either one
    is enough. Without both the tokenizer is WordPiece. For a GPT or a Transformer-XL the class
    decides. A keras-hub preset names its own class.

    Args:
        folder: the folder of the tokenizer's files; or a name on the Hub, as `name` or
            `name@revision`.

    Returns:
        A `WordPieceTokenizer`, `SpellingTokenizer`, `ByteLevelBpeTokenizer` or
        `UnigramTokenizer`; a `MarianTokenizer` for a pair of different SentencePiece models.

    Raises:
        TypeError: if `folder` is neither a path nor a name.
        InputError: if its files are missing, broken, or of another kind of tokenizer.
    """
    folder = find_folder(folder, FETCHED)
    if is_preset(folder):
        return read_preset_tokenizer(folder)
    # Older versions of `transformers` add "Fast" to some class names.
    name = str(read_settings(folder).get("tokenizer_class")).removesuffix("Fast")
    if name not in {*OTHER_CLASSES, *wordpiece.CLASSES, *GENERAL_CLASSES, "BertTokenizer"}:
        raise InputError(
            f"{folder / 'tokenizer_config.json'}: tfnlp has no {name}, whose words another "
            "tokenizer would not find; give a folder with a tokenizer of another class."
        )
    tokenizer = _load_kind(folder, name)
    if name in BY_FILE and (folder / "tokenizer.json").exists():
        _check_reads_alike(folder / "tokenizer.json", tokenizer)
    return tokenizer


def _load_kind(folder, name):
    """Load the tokenizer of the class `name`, or of the family in config.json."""
    family = read_family(folder) or "bert"
    if family == "knowledge_bert":
        raise InputError(
            f"{folder}: the model reads entities beside the tokens, which only fine-tuning, "
            "predictions and `tfnlp.knowledge.load_entity_tokenizer` can give; give another."
        )
    if family in ANY_TOKENIZER or not read_family(folder):
        default = "marian" if (folder / "source.spm").exists() else family
        family = OTHER_CLASSES.get(name, default)
    if family == "elmo":
        return SpellingTokenizer.from_folder(folder)
    # Korean models of many families use WordPiece, and no other kind has a vocab.txt.
    korean = name not in OTHER_CLASSES and (folder / "vocab.txt").exists()
    if family in KINDS["wordpiece"] or name in wordpiece.CLASSES or korean:
        return WordPieceTokenizer.from_folder(folder)
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


def train_tokenizer(texts, kind, vocabulary_size, family=None, lowercase=None):
    """Train a tokenizer on texts.

    Args:
        texts: a list of strings.
        kind: "wordpiece", "bpe", "unigram", "characters" or "words".
        vocabulary_size: the maximum vocabulary size.
        family: the family of the special tokens; where None, "bert", "roberta", "albert", "gpt2"
            or "elmo" by kind.
        lowercase: whether WordPiece and unigram lowercase; where None, as the family's released
            models (WordPiece and ALBERT do, XLNet and DeBERTa v2 and v3 do not).

    Returns:
        The tokenizer, and the family.

    Raises:
        InputError: if the family has another kind of tokenizer, or the size is too small.
    """
    family = family_of_kind(kind, family)
    if kind == "wordpiece":
        return train_wordpiece(texts, vocabulary_size, lowercase is not False), family
    if kind == "unigram":
        return train_unigram(texts, vocabulary_size, family, lowercase), family
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
