"""Byte-level BPE tokenizers of GPT-2, RoBERTa and DeBERTa v1."""

import json
import pathlib

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from tfnlp.text.special_tokens import SPECIAL_TOKENS
from tfnlp.text.text_arguments import as_texts
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.text.tokenizer_files import read_settings, write_tokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import as_json, read_json

FAMILIES = ("roberta", "gpt2", "deberta")


class ByteLevelBpeTokenizer(Tokenizer):
    """Byte-level BPE tokenizer (Radford et al. 2019, section 2.2).

    There are no unknown tokens and encoding is lossless: decoding restores every text.

    Args:
        vocabulary: {token: id}; bytes are written as in GPT-2, a space as "Ġ".
        merges: pairs of tokens, in the order they were learned.
        family: "gpt2", "roberta" or "deberta"; determines the special-token template.
        add_prefix_space: whether to add a space before the first word, as before other words.

    Raises:
        InputError: if a merge uses tokens that the vocabulary lacks.
    """

    def __init__(self, vocabulary, merges, family="roberta", add_prefix_space=False):
        try:
            engine = tokenizers.Tokenizer(models.BPE(vocab=dict(vocabulary), merges=list(merges)))
        except Exception as e:  # the engine raises plain Exception
            raise InputError(
                f"The merges do not belong to the vocabulary ({e}); give vocab.json and "
                "merges.txt of one tokenizer."
            ) from None
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
        engine.decoder = decoders.ByteLevel()
        self.family = family
        self.special_tokens = SPECIAL_TOKENS[family]
        self.add_prefix_space = add_prefix_space
        self.special_tokens.apply_to(engine)
        # Offsets exclude the space that belongs to a token.
        trim = processors.ByteLevel(add_prefix_space=add_prefix_space, trim_offsets=True)
        engine.post_processor = processors.Sequence([trim, engine.post_processor])
        super().__init__(engine, self.special_tokens.tokens["pad_token"])

    @classmethod
    def from_folder(cls, folder, family):
        """Load vocab.json and merges.txt (or tokenizer.json) of a checkpoint.

        Raises:
            InputError: if a file is missing, broken, or of another kind of tokenizer.
        """
        folder = pathlib.Path(folder)
        settings = read_settings(folder)
        if (folder / "vocab.json").exists():
            vocabulary = read_json(folder / "vocab.json")
            merges = read_merges(folder / "merges.txt")
        else:
            path = folder / "tokenizer.json"
            content = read_json(path)
            if content.get("model", {}).get("type") != "BPE":
                raise InputError(
                    f"{path} is not a byte-level BPE tokenizer; a {family} folder must hold one."
                )
            vocabulary = content["model"]["vocab"]
            # Added tokens are stored beside the vocabulary.
            vocabulary |= {t["content"]: t["id"] for t in content.get("added_tokens", [])}
            merges = [
                tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge)
                for merge in content["model"]["merges"]
            ]
            pre_tokenizer = content.get("pre_tokenizer") or {}
            settings = {"add_prefix_space": pre_tokenizer.get("add_prefix_space")} | settings
        try:
            return cls(vocabulary, merges, family, bool(settings.get("add_prefix_space")))
        except InputError as e:
            raise InputError(f"{folder}: {e}") from None

    def settings(self):
        """Return the fields of a tokenizer_config.json."""
        tokens = self.special_tokens.tokens
        return {
            "tokenizer_class": self.special_tokens.tokenizer_class,
            "add_prefix_space": self.add_prefix_space,
            **tokens,
        }

    def save(self, folder):
        """Write vocab.json, merges.txt, tokenizer_config.json and tokenizer.json.

        Another tokenizer's files in the folder are removed.

        Raises:
            InputError: if the folder holds a model of another family.
        """
        content = json.loads(self.to_json())
        merges = (m if isinstance(m, str) else " ".join(m) for m in content["model"]["merges"])
        files = {
            "vocab.json": json.dumps(self._engine.get_vocab(), ensure_ascii=False),
            "merges.txt": "#version: 0.2\n" + "".join(f"{m}\n" for m in merges),
            "tokenizer_config.json": as_json(self.settings()),
            "tokenizer.json": json.dumps(content, ensure_ascii=False, indent=2),
        }
        write_tokenizer(folder, self, files)


def train_byte_level_bpe(texts, vocabulary_size, family="roberta", min_frequency=2):
    """Train a byte-level BPE vocabulary on texts, deterministically.

    Args:
        texts: a list of strings.
        vocabulary_size: the maximum vocabulary size, including bytes and special tokens.
        family: "gpt2", "roberta" or "deberta"; determines the special tokens.
        min_frequency: the minimum count of a pair that is merged.

    Returns:
        A `ByteLevelBpeTokenizer`.

    Raises:
        InputError: if the size has no room for the bytes.
    """
    special, alphabet = first_tokens(family, vocabulary_size)
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
    return ByteLevelBpeTokenizer(
        model["vocab"], [tuple(merge) for merge in model["merges"]], family
    )


def first_tokens(family, vocabulary_size):
    """Return the special tokens and the 256 bytes, the first entries of a family's vocabulary.

    Raises:
        InputError: if the size has no room for them.
    """
    special = list(dict.fromkeys(SPECIAL_TOKENS[family].tokens.values()))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if vocabulary_size < len(special) + len(alphabet):
        raise InputError(
            f"vocabulary_size={vocabulary_size} must be at least {len(special) + len(alphabet)}, "
            "for the 256 bytes and the special tokens."
        )
    return special, alphabet


def read_merges(path):
    """Read the token pairs of a merges.txt.

    Raises:
        InputError: if the file is missing or broken.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        raise InputError(f"{path} is missing; copy it beside vocab.json.") from None
    except UnicodeDecodeError as e:
        raise InputError(f"{path} is not UTF-8 text (byte {e.start}); copy it again.") from None
    merges = []
    for number, line in enumerate(lines, start=1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = line.split(" ")
        if len(pair) != 2:
            raise InputError(f"{path}, line {number}: {line!r} is not two tokens and a space.")
        merges.append(tuple(pair))
    return merges
