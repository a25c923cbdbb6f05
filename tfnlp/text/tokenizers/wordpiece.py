"""WordPiece tokenizer of BERT."""

import collections
from typing import ClassVar

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS
from tfnlp.text.tokenizers.tokenizer import Tokenizer
from tfnlp.text.tokenizers.tokenizer_files import is_by_file, read_engine, read_token_lines
from tfnlp.utils.errors import InputError

# The first tokens of a trained vocabulary.
FIRST_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
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

    special_tokens = SPECIAL_TOKENS["bert"]
    fields: ClassVar = {
        "do_lower_case": "lowercase",
        "strip_accents": "strip_accents",
        "tokenize_chinese_chars": "split_cjk",
    }

    def __init__(self, vocabulary, lowercase=True, strip_accents=None, split_cjk=True):
        self.vocabulary = list(vocabulary)
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_cjk = split_cjk
        ids = {token: i for i, token in enumerate(self.vocabulary)}
        self.special_tokens.check_in(ids)
        if len(ids) != len(self.vocabulary):
            twice = next(t for i, t in enumerate(self.vocabulary) if ids[t] != i)
            raise InputError(f"The vocabulary holds {twice!r} twice; every token needs one id.")
        super().__init__(_engine(ids, lowercase, strip_accents, split_cjk), "[PAD]")
        self._special_ids = {ids[token] for token in FIRST_TOKENS if token in ids}

    @classmethod
    def from_settings(cls, vocabulary, settings):
        """Build a tokenizer from its tokens and the fields of a tokenizer_config.json."""
        return cls(vocabulary, **cls._options(settings))

    @classmethod
    def _read(cls, folder, family):
        if (folder / "vocab.txt").exists() and not is_by_file(folder, cls.family or "bert"):
            return {"vocabulary": read_token_lines(folder / "vocab.txt")}, {}
        content = read_engine(folder, "WordPiece")
        ids, normalizer = content["model"]["vocab"], content.get("normalizer") or {}
        # The engine's names, of which one differs from ours.
        stored = normalizer | {"split_cjk": normalizer.get("handle_chinese_chars", True)}
        settings = {field: stored[name] for field, name in cls.fields.items() if name in stored}
        return {"vocabulary": sorted(ids, key=ids.get)}, settings

    def split_words(self, text):
        """Return the words of a text, normalised, before they are split into pieces."""
        return _split_words(self._engine, text)

    def files(self):
        """Return vocab.txt and tokenizer.json, {file name: text}."""
        # `transformers` reads "[MASK]" in a text as the token. BERT's own tokenizer, the
        # mobile runtimes and `encode` read it as text, so only this file declares special
        # tokens.
        engine = tokenizers.Tokenizer.from_str(self.to_json())
        engine.add_special_tokens([t for t in FIRST_TOKENS if t in self.vocabulary])
        return {
            "vocab.txt": "".join(f"{token}\n" for token in self.vocabulary),
            "tokenizer.json": engine.to_str(pretty=True),
        }


def train_wordpiece(texts, vocabulary_size, lowercase=True, strip_accents=False, min_frequency=2):
    """Train a WordPiece vocabulary on texts, deterministically.

    Accents are kept by default: stripping them decomposes Hangul syllables, and mobile runtimes do
    not do it.

    Args:
        texts: a list of strings.
        vocabulary_size: the maximum vocabulary size, including special tokens.
        lowercase, strip_accents: as in `WordPieceTokenizer`.
        min_frequency: the minimum count of a pair that is merged.

    Returns:
        A `WordPieceTokenizer`.
    """
    texts = as_texts(texts)
    ids = {token: i for i, token in enumerate(FIRST_TOKENS)}
    engine = _engine(ids, lowercase, strip_accents, split_cjk=True)
    alphabet, continuing = _alphabet(engine, texts, (vocabulary_size - len(ids)) // 2)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        # The trainer numbers "##" characters in an order that varies from run to run, and
        # breaks ties by number. As special tokens they have fixed numbers.
        special_tokens=[*FIRST_TOKENS, *alphabet, *(f"##{c}" for c in continuing)],
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
        for word in _split_words(engine, text):
            counts.update(word)
            continuing.update(word[1:])
    most = sorted(counts, key=lambda c: (-counts[c], c))[: min(limit, MAX_ALPHABET)]
    return sorted(most), sorted(continuing.intersection(most))


def _split_words(engine, text):
    normal = engine.normalizer.normalize_str(text)
    return [word for word, _ in engine.pre_tokenizer.pre_tokenize_str(normal)]


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
    engine.post_processor = WordPieceTokenizer.special_tokens.template(engine)
    return engine
