"""WordPiece tokenizer of BERT."""

import collections
import pathlib

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from tfnlp.text.text_arguments import as_texts
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.text.tokenizer_files import read_settings, write_tokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import as_json, read_json

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# BERT maps longer words to [UNK]; `transformers` has the same limit.
MAX_CHARS_PER_WORD = 100
# The maximum number of characters in a trained vocabulary; rarer ones are [UNK]. Korean text has
# some 2,000 syllables.
MAX_ALPHABET = 3000


class WordPieceTokenizer(Tokenizer):
    """WordPiece tokenizer with the ids of BERT's own.

    Devlin et al. 2019, section 4 and the released `tokenization.py`. It removes control
    characters, splits off CJK ideographs, lowercases and strips accents, splits at white space and
    punctuation, and then takes the longest matching pieces from the left. Hugging Face's
    `tokenizers` does the work.

    Args:
        vocabulary: the tokens in order of their ids, including `[PAD]`, `[UNK]`, `[CLS]` and
            `[SEP]`.
        lowercase: whether to lowercase.
        strip_accents: whether to decompose characters and drop the accents, which also decomposes
            Hangul syllables; equal to `lowercase` where None, as in BERT.
        split_cjk: whether each CJK ideograph is a separate word.

    Raises:
        InputError: if the vocabulary lacks a special token or has a duplicate token.
    """

    def __init__(self, vocabulary, lowercase=True, strip_accents=None, split_cjk=True):
        self.vocabulary = list(vocabulary)
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_cjk = split_cjk
        ids = {token: i for i, token in enumerate(self.vocabulary)}
        for token in SPECIAL_TOKENS[:4]:
            if token not in ids:
                raise InputError(f"The vocabulary lacks {token}, which BERT's input needs.")
        if len(ids) != len(self.vocabulary):
            twice = next(t for i, t in enumerate(self.vocabulary) if ids[t] != i)
            raise InputError(f"The vocabulary holds {twice!r} twice; every token needs one id.")
        super().__init__(_engine(ids, lowercase, strip_accents, split_cjk), "[PAD]")
        self._special_ids = {ids[token] for token in SPECIAL_TOKENS if token in ids}

    @classmethod
    def from_folder(cls, folder):
        """Load vocab.txt (or tokenizer.json) and tokenizer_config.json of a checkpoint.

        Raises:
            InputError: if there is no vocabulary, or a file is broken.
        """
        folder = pathlib.Path(folder)
        settings = read_settings(folder)
        if (folder / "vocab.txt").exists():
            vocabulary = read_vocabulary(folder / "vocab.txt")
        elif (folder / "tokenizer.json").exists():
            vocabulary, stored = _from_tokenizer_json(folder / "tokenizer.json")
            settings = stored | settings
        else:
            raise InputError(
                f"{folder} holds neither vocab.txt nor tokenizer.json; copy the tokenizer's "
                "files into it."
            )
        try:
            return cls.from_settings(vocabulary, settings)
        except InputError as e:
            raise InputError(f"{folder}: {e}") from None

    @classmethod
    def from_settings(cls, vocabulary, settings):
        """Build a tokenizer from its tokens and the fields of a tokenizer_config.json."""
        return cls(
            vocabulary,
            lowercase=settings.get("do_lower_case", True),
            strip_accents=settings.get("strip_accents"),
            split_cjk=settings.get("tokenize_chinese_chars", True),
        )

    def settings(self):
        """Return the fields of a tokenizer_config.json."""
        return {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.split_cjk,
            "unk_token": "[UNK]",
            "sep_token": "[SEP]",
            "pad_token": "[PAD]",
            "cls_token": "[CLS]",
            "mask_token": "[MASK]",
        }

    def save(self, folder):
        """Write vocab.txt, tokenizer_config.json and tokenizer.json, as `transformers` does.

        Files of another tokenizer in the folder are removed.
        """
        # `transformers` reads "[MASK]" in a text as the token. BERT's own tokenizer, the
        # mobile runtimes and `encode` read it as text, so only this file declares special
        # tokens.
        engine = tokenizers.Tokenizer.from_str(self.to_json())
        engine.add_special_tokens([t for t in SPECIAL_TOKENS if t in self.vocabulary])
        files = {
            "vocab.txt": "".join(f"{token}\n" for token in self.vocabulary),
            "tokenizer_config.json": as_json(self.settings()),
            "tokenizer.json": engine.to_str(pretty=True),
        }
        write_tokenizer(folder, self, files)


def train_wordpiece(texts, vocabulary_size, lowercase=True, strip_accents=False, min_frequency=2):
    """Train a WordPiece vocabulary on texts, deterministically.

    Accents are kept by default: stripping them decomposes Hangul syllables, and mobile runtimes do
    not do it.

    Args:
        texts: a list of strings.
        vocabulary_size: the maximum vocabulary size, including special tokens.
        lowercase: whether the tokenizer lowercases.
        strip_accents: whether the tokenizer strips accents.
        min_frequency: the minimum count of a pair that is merged.

    Returns:
        A `WordPieceTokenizer`.
    """
    texts = as_texts(texts)
    ids = {token: i for i, token in enumerate(SPECIAL_TOKENS)}
    engine = _engine(ids, lowercase, strip_accents, split_cjk=True)
    alphabet, continuing = _alphabet(engine, texts, (vocabulary_size - len(ids)) // 2)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        # The trainer numbers "##" characters in an order that varies from run to run, and
        # breaks ties by number. As special tokens they have fixed numbers.
        special_tokens=[*SPECIAL_TOKENS, *alphabet, *(f"##{c}" for c in continuing)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    engine.train_from_iterator(texts, trainer)
    learned = engine.get_vocab()
    return WordPieceTokenizer(sorted(learned, key=learned.get), lowercase, strip_accents)


def _alphabet(engine, texts, limit):
    """Return the most frequent characters, and those among them that continue a word.

    There are at most `limit` characters, so that they fit the vocabulary together with their "##"
    forms.
    """
    counts, continuing = collections.Counter(), set()
    for text in texts:
        normal = engine.normalizer.normalize_str(text)
        for word, _ in engine.pre_tokenizer.pre_tokenize_str(normal):
            counts.update(word)
            continuing.update(word[1:])
    most = sorted(counts, key=lambda c: (-counts[c], c))[: min(limit, MAX_ALPHABET)]
    return sorted(most), sorted(continuing.intersection(most))


def read_vocabulary(path):
    """Read the tokens of a vocab.txt, one on each line.

    Raises:
        InputError: if the file is empty or not UTF-8.
    """
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError(f"{path} is not UTF-8 text (byte {e.start}); save it as UTF-8.") from None
    # Not splitlines(): a token may be a Unicode line separator.
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise InputError(f"{path} is empty; it must hold one token a line.")
    return lines


def bert_normalizer(lowercase, strip_accents, split_cjk):
    """Return BERT's normaliser, with the options of `WordPieceTokenizer`."""
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=split_cjk,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )


def _engine(ids, lowercase, strip_accents, split_cjk):
    engine = tokenizers.Tokenizer(
        models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=MAX_CHARS_PER_WORD)
    )
    engine.normalizer = bert_normalizer(lowercase, strip_accents, split_cjk)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece(prefix="##")
    engine.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
    )
    return engine


def _from_tokenizer_json(path):
    content = read_json(path)
    model = content.get("model", {})
    if model.get("type", "WordPiece") != "WordPiece" or not isinstance(model.get("vocab"), dict):
        raise InputError(f"{path} is not a WordPiece tokenizer; a BERT folder must hold one.")
    normalizer = content.get("normalizer") or {}
    names = {
        "lowercase": "do_lower_case",
        "strip_accents": "strip_accents",
        "handle_chinese_chars": "tokenize_chinese_chars",
    }
    settings = {theirs: normalizer[ours] for ours, theirs in names.items() if ours in normalizer}
    return sorted(model["vocab"], key=model["vocab"].get), settings
