"""SentencePiece unigram tokenizers of ALBERT, XLNet, DeBERTa v2 and v3, and Marian."""

import base64
import json
import pathlib

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from tfnlp.text.sentencepiece_model import (
    compiled_normalization,
    read_sentencepiece,
    sentencepiece_bytes,
)
from tfnlp.text.special_tokens import SPECIAL_TOKENS
from tfnlp.text.text_arguments import as_texts
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.text.tokenizer_files import read_settings, write_tokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import as_json, read_json

# The SentencePiece file of each family.
MODEL_FILES = {
    "albert": "spiece.model",
    "xlnet": "spiece.model",
    "deberta-v2": "spm.model",
    "marian": "source.spm",
}
FAMILIES = tuple(MODEL_FILES)


class UnigramTokenizer(Tokenizer):
    """Unigram tokenizer, by the most probable pieces (Kudo 2018, 'Subword Regularization', eq. 7).

    Args:
        pieces: (piece, log probability) in order of their ids.
        family: "albert", "xlnet", "deberta-v2" or "marian"; determines the special-token template
            and the normalisation, which is `character_map` alone for Marian.
        lowercase: whether to lowercase; the family's default where None.
        keep_accents: whether ALBERT keeps accents. Stripping them decomposes Hangul syllables, and
            the pieces are then learned from the decomposed text.
        character_map: SentencePiece's compiled normalisation, bytes; or None.

    Raises:
        InputError: if the pieces lack a special token.
    """

    def __init__(self, pieces, family, lowercase=None, keep_accents=False, character_map=None):
        self.family = family
        self.special_tokens = SPECIAL_TOKENS[family]
        self.lowercase = family == "albert" if lowercase is None else lowercase
        self.keep_accents = keep_accents
        self.character_map = character_map
        self.pieces = list(pieces)
        names = {piece: i for i, (piece, _) in enumerate(pieces)}
        for token in self.special_tokens.tokens.values():
            if token not in names and token != "[MASK]":
                raise InputError(f"The pieces lack {token}, which {family}'s input needs.")
        unknown = names[self.special_tokens.tokens["unk_token"]]
        engine = tokenizers.Tokenizer(models.Unigram(list(pieces), unk_id=unknown))
        engine.normalizer = _normalizer(family, self.lowercase, keep_accents, character_map)
        engine.pre_tokenizer = _pre_tokenizer(family)
        engine.decoder = decoders.Metaspace()
        if family == "marian":
            # A token that is dropped, such as an unknown one, leaves its space behind.
            strip = decoders.Replace(tokenizers.Regex("^ +| +$"), "")
            engine.decoder = decoders.Sequence([decoders.Metaspace(), decoders.Fuse(), strip])
        super().__init__(
            self.special_tokens.apply_to(engine), self.special_tokens.tokens["pad_token"]
        )

    @classmethod
    def from_folder(cls, folder, family):
        """Load tokenizer.json, or the SentencePiece model file, of a checkpoint.

        Raises:
            InputError: if there is no such file, or it is broken or of another kind of tokenizer.
        """
        folder = pathlib.Path(folder)
        settings = read_settings(folder)
        if (folder / "tokenizer.json").exists():
            pieces, character_map = _from_tokenizer_json(folder / "tokenizer.json", family)
        elif (folder / MODEL_FILES[family]).exists():
            pieces, character_map = read_sentencepiece(folder / MODEL_FILES[family])
        else:
            raise InputError(
                f"{folder} holds neither tokenizer.json nor {MODEL_FILES[family]}; copy the "
                "tokenizer's files into it."
            )
        try:
            return cls(
                pieces,
                family,
                settings.get("do_lower_case"),
                settings.get("keep_accents", False),
                character_map,
            )
        except InputError as e:
            raise InputError(f"{folder}: {e}") from None

    def settings(self):
        """Return the fields of a tokenizer_config.json."""
        return {
            "tokenizer_class": self.special_tokens.tokenizer_class,
            "do_lower_case": self.lowercase,
            "keep_accents": self.keep_accents,
            **self.special_tokens.tokens,
        }

    def save(self, folder):
        """Write tokenizer_config.json and tokenizer.json, in the format of `transformers`.

        For Marian it writes two identical SentencePiece files and vocab.json instead of
        tokenizer.json. Files of another tokenizer in the folder are removed.

        Raises:
            InputError: if the folder holds a model of another family.
        """
        files = {"tokenizer_config.json": as_json(self.settings())}
        if self.family == "marian":
            tokens = self.special_tokens.tokens
            special = set(tokens.values())
            model = sentencepiece_bytes(
                self.pieces, tokens["unk_token"], special, self.character_map
            )
            names = {piece: i for i, (piece, _) in enumerate(self.pieces)}
            files |= {"source.spm": model, "target.spm": model, "vocab.json": as_json(names)}
        else:
            files["tokenizer.json"] = self.to_json()
        write_tokenizer(folder, self, files)


def train_unigram(texts, vocabulary_size, family="albert", lowercase=None, keep_accents=True):
    """Train unigram pieces on texts.

    Args:
        texts: a list of strings.
        vocabulary_size: the maximum number of pieces, including special tokens.
        family: "albert", "xlnet", "deberta-v2" or "marian".
        lowercase: whether the tokenizer lowercases; the family's default where None.
        keep_accents: whether ALBERT keeps accents (XLNet never does).

    Returns:
        A `UnigramTokenizer`.
    """
    style = SPECIAL_TOKENS[family]
    lowercase = family == "albert" if lowercase is None else lowercase
    character_map = None
    if family == "marian":
        character_map = compiled_normalization("nmt_nfkc_cf" if lowercase else "nmt_nfkc")
    engine = tokenizers.Tokenizer(models.Unigram())
    engine.normalizer = _normalizer(family, lowercase, keep_accents, character_map)
    engine.pre_tokenizer = _pre_tokenizer(family)
    special = list(dict.fromkeys(style.tokens.values()))
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary_size,
        special_tokens=special,
        unk_token=style.tokens["unk_token"],
        show_progress=False,
    )
    try:
        engine.train_from_iterator(as_texts(texts), trainer)
    except Exception as e:  # the engine raises plain Exception
        if "not large enough" not in str(e):
            raise
        raise InputError(
            f"vocabulary_size={vocabulary_size} is less than the characters of the texts and the "
            "special tokens; give a larger one."
        ) from None
    # Rounded, as reading the file may lose the last bit, which decides ties ("ㅋㅋㅋ").
    learned = json.loads(engine.to_str())["model"]["vocab"]
    pieces = [(piece, round(score, 6)) for piece, score in learned]
    return UnigramTokenizer(pieces, family, lowercase, keep_accents, character_map)


def _normalizer(family, lowercase, keep_accents, character_map):
    """Return the normaliser that the family's tokenizer of `transformers` has."""
    steps = []
    if family == "marian":
        # As in SentencePiece: apply its map, then collapse and strip spaces.
        steps = [normalizers.Precompiled(character_map)] if character_map else []
        steps.append(normalizers.Replace(tokenizers.Regex(" {2,}"), " "))
        return normalizers.Sequence([*steps, normalizers.Replace(tokenizers.Regex("^ +| +$"), "")])
    if family == "deberta-v2":
        if lowercase:
            steps.append(normalizers.Lowercase())
        steps += [
            normalizers.Replace(tokenizers.Regex(r"\s{2,}|[\n\r\t]"), " "),
            normalizers.NFC(),
            normalizers.Strip(left=False, right=True),
        ]
        return normalizers.Sequence(steps)
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not keep_accents or family == "xlnet":
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if lowercase:
        steps.append(normalizers.Lowercase())
    if character_map:
        steps.append(normalizers.Precompiled(character_map))
    return normalizers.Sequence(steps)


def _pre_tokenizer(family):
    space = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    if family in ("deberta-v2", "marian"):
        return space
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])


def _from_tokenizer_json(path, family):
    content = read_json(path)
    if content.get("model", {}).get("type") != "Unigram":
        raise InputError(
            f"{path} is not a SentencePiece unigram tokenizer; a {family} folder must hold one."
        )
    pieces = [tuple(piece) for piece in content["model"]["vocab"]]
    # Added tokens, such as DeBERTa's [MASK], follow the pieces.
    late = sorted((t["id"], t["content"]) for t in content.get("added_tokens", []))
    pieces += [(token, 0.0) for i, token in late if i >= len(pieces)]
    steps = (content.get("normalizer") or {}).get("normalizers", [])
    maps = [s["precompiled_charsmap"] for s in steps if s.get("type") == "Precompiled"]
    return pieces, base64.b64decode(maps[0]) if maps else None
