"""Byte-level BPE of GPT-2, RoBERTa, DeBERTa v1 and ModernBERT, of learned merges or characters."""

import collections
import json
from typing import ClassVar

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS
from tfnlp.text.tokenizers.tokenizer import Tokenizer
from tfnlp.text.tokenizers.tokenizer_files import read_engine, read_token_lines
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json


class ByteLevelBpeTokenizer(Tokenizer):
    """Byte-level BPE tokenizer (Radford et al. 2019, section 2.2).

    There are no unknown tokens and encoding is lossless: decoding restores every text.

    Args:
        vocabulary: {token: id}; bytes are written as in GPT-2, a space as "Ġ".
        merges: pairs of tokens, in the order they were learned.
        family: "gpt2", "roberta", "deberta" or "modernbert"; determines the special-token
            template.
        add_prefix_space: whether to add a space before the first word, as before other words.
        composes: whether texts are put into Unicode's form NFC first, which is then what decoding
            restores; where None, of a ModernBERT alone.

    Raises:
        InputError: if a merge uses tokens that the vocabulary lacks.
    """

    fields: ClassVar = {"add_prefix_space": "add_prefix_space"}

    def __init__(
        self, vocabulary, merges, family="roberta", add_prefix_space=False, composes=None
    ):
        try:
            engine = tokenizers.Tokenizer(models.BPE(vocab=dict(vocabulary), merges=list(merges)))
        except Exception as e:  # the engine raises plain Exception
            raise InputError(
                f"The merges do not belong to the vocabulary ({e}); give vocab.json and "
                "merges.txt of one tokenizer."
            ) from None
        self.family = family
        self.special_tokens = SPECIAL_TOKENS[family]
        self.add_prefix_space = bool(add_prefix_space)
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(self.add_prefix_space)
        self.composes = family == "modernbert" if composes is None else composes
        if self.composes:
            engine.normalizer = normalizers.NFC()
        engine.decoder = decoders.ByteLevel()
        self.special_tokens.add_to(engine)
        # Offsets exclude the space that belongs to a token.
        trim = processors.ByteLevel(add_prefix_space=self.add_prefix_space, trim_offsets=True)
        engine.post_processor = processors.Sequence([trim, engine.post_processor])
        super().__init__(engine, self.special_tokens.tokens["pad_token"])

    @classmethod
    def _read(cls, folder, family):
        if (folder / "vocab.json").exists():
            vocabulary, merges = read_vocabulary(folder / "vocab.json", folder / "merges.txt")
            return {"vocabulary": vocabulary, "merges": merges, "family": family}, {}
        content = read_engine(folder, "BPE")
        # Added tokens are stored beside the vocabulary.
        added = {token["content"]: token["id"] for token in content.get("added_tokens", [])}
        merges = [
            tuple(merge.split(" ") if isinstance(merge, str) else merge)
            for merge in content["model"]["merges"]
        ]
        vocabulary = content["model"]["vocab"] | added
        settings = content.get("pre_tokenizer") or {}
        composes = (content.get("normalizer") or {}).get("type") == "NFC"
        arguments = {"vocabulary": vocabulary, "merges": merges, "family": family}
        return arguments | {"composes": composes}, settings

    def files(self):
        """Return vocab.json, merges.txt and tokenizer.json, {file name: text}.

        The latter alone says whether the tokenizer composes; one that does has no other.
        """
        content = json.loads(self.to_json())
        whole = {"tokenizer.json": json.dumps(content, ensure_ascii=False, indent=2)}
        if self.composes:
            return whole
        merges = (m if isinstance(m, str) else " ".join(m) for m in content["model"]["merges"])
        return {
            "vocab.json": json.dumps(self._engine.get_vocab(), ensure_ascii=False),
            "merges.txt": "#version: 0.2\n" + "".join(f"{m}\n" for m in merges),
        } | whole


def read_vocabulary(path, merges_path):
    """Return {token: id} of a vocab.json, and the token pairs of a merges.txt.

    Raises:
        InputError: if a file is missing or not UTF-8.
    """
    lines = read_token_lines(merges_path)
    if lines and lines[0].startswith("#version"):
        del lines[0]
    return read_json(path), [tuple(line.split(" ")) for line in lines if line]


def train_byte_level_bpe(texts, vocabulary_size, family="roberta", min_frequency=2):
    """Train a byte-level BPE vocabulary on texts, deterministically.

    Args:
        texts: a list of strings.
        vocabulary_size: the maximum vocabulary size, including bytes and special tokens.
        family: "gpt2", "roberta", "deberta" or "modernbert"; determines the special tokens.
        min_frequency: the minimum count of a pair that is merged.

    Returns:
        A `ByteLevelBpeTokenizer`.

    Raises:
        InputError: if the size has no room for the bytes.
    """
    special, alphabet = _first_tokens(family, vocabulary_size)
    engine = tokenizers.Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    engine.train_from_iterator(as_texts(texts), trainer)
    model = json.loads(engine.to_str())["model"]
    return ByteLevelBpeTokenizer(model["vocab"], map(tuple, model["merges"]), family)


def train_characters(texts, vocabulary_size, family="gpt2"):
    """Build a vocabulary of the most frequent characters, such as Hangul syllables.

    All bytes are tokens too. A character that is absent from the texts, or that does not fit the
    vocabulary, is encoded as its bytes, so there are no unknown tokens. No token holds two
    characters, since merges stay within one. Arguments and errors are as in
    `train_byte_level_bpe`.
    """
    special, alphabet = _first_tokens(family, vocabulary_size)
    counts = collections.Counter()
    for text in as_texts(texts):
        counts.update(text)
    ids, merges = {token: i for i, token in enumerate([*special, *alphabet])}, []
    engine = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for character in sorted(counts, key=lambda one: (-counts[one], one)):
        # A letter for each byte.
        letters = "".join(piece for piece, _ in engine.pre_tokenize_str(character))
        ends = [end for end in range(2, len(letters) + 1) if letters[:end] not in ids]
        if len(ids) + len(ends) > vocabulary_size:
            break
        for end in ends:
            ids[letters[:end]] = len(ids)
            merges.append((letters[: end - 1], letters[end - 1]))
    return ByteLevelBpeTokenizer(ids, merges, family)


def _first_tokens(family, vocabulary_size):
    """Return the special tokens and the 256 bytes, the first entries of a family's vocabulary."""
    special = list(dict.fromkeys(SPECIAL_TOKENS[family].tokens.values()))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if vocabulary_size < len(special) + len(alphabet):
        raise InputError(
            f"vocabulary_size={vocabulary_size} must be at least {len(special) + len(alphabet)}, "
            "for the 256 bytes and the special tokens."
        )
    return special, alphabet
