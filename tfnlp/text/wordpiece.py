"""WordPiece tokenization as BERT has it."""

import collections
import pathlib

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from tfnlp.errors import InputError
from tfnlp.files import as_json, read_json
from tfnlp.text.texts import as_texts
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.text.tokenizer_files import read_settings, write_tokenizer

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# BERT gives up on longer words; `transformers` has the same bound.
MAX_CHARS_PER_WORD = 100
# Characters that a learned vocabulary holds by themselves; rarer ones are [UNK]. Korean text
# has some 2,000 syllables.
MAX_ALPHABET = 3000


class WordPieceTokenizer(Tokenizer):
    """Text to WordPiece ids, equal to those of BERT's own tokenizer.

    Devlin et al. 2019, section 4 and the released `tokenization.py`: clean control
    characters, split off CJK ideographs, lowercase and strip accents, split at white space
    and punctuation, then the longest matching pieces from the left. The work is done by
    Hugging Face's `tokenizers`.

    Args:
        vocabulary: the tokens in order of their ids, `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]`
            among them.
        lowercase: whether to lowercase.
        strip_accents: whether to decompose characters and drop the accents, which takes
            Hangul syllables apart; as `lowercase` where None, BERT's rule.
        split_cjk: whether CJK ideographs are words of their own.

    Raises:
        InputError: if the vocabulary lacks a special token or has one token twice.
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
        """Reads vocab.txt (or tokenizer.json) and tokenizer_config.json of a checkpoint.

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
        """From the tokens and the fields of a tokenizer_config.json."""
        return cls(
            vocabulary,
            lowercase=settings.get("do_lower_case", True),
            strip_accents=settings.get("strip_accents"),
            split_cjk=settings.get("tokenize_chinese_chars", True),
        )

    def settings(self):
        """The fields of a tokenizer_config.json."""
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
        """Writes vocab.txt, tokenizer_config.json and tokenizer.json, as `transformers` does.

        Another tokenizer's files in the folder are removed.
        """
        # `transformers` takes "[MASK]" in a text for the token; BERT's own tokenizer, the
        # mobile runtimes and `encode` take it for text, so the tokens are told there alone.
        engine = tokenizers.Tokenizer.from_str(self.to_json())
        engine.add_special_tokens([t for t in SPECIAL_TOKENS if t in self.vocabulary])
        files = {
            "vocab.txt": "".join(f"{token}\n" for token in self.vocabulary),
            "tokenizer_config.json": as_json(self.settings()),
            "tokenizer.json": engine.to_str(pretty=True),
        }
        write_tokenizer(folder, self, files)


def train_wordpiece(texts, vocabulary_size, lowercase=True, strip_accents=False, min_frequency=2):
    """Learns a WordPiece vocabulary from texts.

    Accents are kept by default: stripping them takes Hangul syllables apart, and mobile
    runtimes do not do it. The same texts give the same vocabulary.

    Args:
        texts: a list of strings.
        vocabulary_size: the most tokens to learn, special ones counted.
        lowercase: whether the tokenizer lowercases.
        strip_accents: whether the tokenizer strips accents.
        min_frequency: how often a pair must occur to be merged.

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
        # The trainer numbers "##" characters in an order that changes from run to run, and
        # merges by number where counts are equal; as special tokens they are numbered here.
        special_tokens=[*SPECIAL_TOKENS, *alphabet, *(f"##{c}" for c in continuing)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    engine.train_from_iterator(texts, trainer)
    learned = engine.get_vocab()
    return WordPieceTokenizer(sorted(learned, key=learned.get), lowercase, strip_accents)


def _alphabet(engine, texts, limit):
    """The most frequent characters, and those among them that follow others in a word.

    At most `limit` characters, so that with their "##" forms they fit the vocabulary.
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
    """The tokens of a vocab.txt, one a line.

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
    """Return BERT's normaliser; arguments as of `WordPieceTokenizer`."""
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
