"""SentencePiece unigram tokenizers of ALBERT, XLNet, DeBERTa v2 and v3, XLM-R, and Marian."""

import base64
import json
from typing import ClassVar

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from tfnlp.text.reading.lines import check_file
from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS
from tfnlp.text.tokenizers.tokenizer import Tokenizer
from tfnlp.text.tokenizers.tokenizer_files import (
    BY_FILE,
    is_by_file,
    read_engine,
    read_settings,
)
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import as_json

# Pieces that XLM-R's SentencePiece model has before the others.
FIRST_PIECES = ["<unk>", "<s>", "</s>"]
# The sections of tokenizer.json on what becomes of a text before it is split into pieces.
RULES = ("normalizer", "pre_tokenizer")
# The SentencePiece file of each family.
MODEL_FILES = {
    "albert": "spiece.model",
    "xlnet": "spiece.model",
    "deberta-v2": "spm.model",
    "xlm-roberta": "sentencepiece.bpe.model",
    "marian": "source.spm",
}


class UnigramTokenizer(Tokenizer):
    """Unigram tokenizer, by the most probable pieces (Kudo 2018, 'Subword Regularization', eq. 7).

    Args:
        pieces: (piece, log probability) in order of their ids.
        family: "albert", "xlnet", "deberta-v2", "xlm-roberta" or "marian"; determines the
            special-token template and the normalisation, which is `character_map` alone for Marian
            and XLM-R.
        lowercase: whether to lowercase; the family's default where None.
        keep_accents: whether ALBERT keeps accents; XLNet does by `rules` alone, as its class in
            `transformers` never does. Stripping them decomposes Hangul syllables.
        character_map: SentencePiece's compiled normalisation, bytes; or None.
        rules: `normalizer` and `pre_tokenizer` of a tokenizer.json, a dict of JSON content; those
            of the family where None.

    Raises:
        InputError: if the pieces lack a special token, or `tokenizers` does not know the rules.
    """

    fields: ClassVar = {"do_lower_case": "lowercase", "keep_accents": "keep_accents"}

    def __init__(
        self,
        pieces,
        family,
        lowercase=None,
        keep_accents=False,
        character_map=None,
        rules=None,
    ):
        self.family = family
        self.special_tokens = SPECIAL_TOKENS[family]
        self.lowercase = family == "albert" if lowercase is None else lowercase
        self.keep_accents = keep_accents
        self.character_map = character_map
        self.pieces = list(pieces)
        names, tokens = [piece for piece, _ in self.pieces], self.special_tokens.tokens
        self.special_tokens.check_in(names)
        model = models.Unigram(self.pieces, unk_id=names.index(tokens["unk_token"]))
        kept = keep_accents and family != "xlnet"
        usual = _rules_of_family(family, self.lowercase, kept, character_map)
        read = usual if rules is None else _read_rules(rules)
        self.rules = None if _steps_of_rules(read) == _steps_of_rules(usual) else rules
        engine = _engine(model, read)
        engine.decoder = decoders.Metaspace()
        if family == "marian":
            # A token that is dropped, such as an unknown one, leaves its space behind.
            strip = decoders.Replace(tokenizers.Regex("^ +| +$"), "")
            engine.decoder = decoders.Sequence([decoders.Metaspace(), decoders.Fuse(), strip])
        self.special_tokens.add_to(engine)
        super().__init__(engine, tokens["pad_token"])

    @classmethod
    def _read(cls, folder, family):
        path = folder / MODEL_FILES[family]
        if path.exists() and not (folder / "tokenizer.json").exists():
            pieces, character_map, symbols = read_sentencepiece(path)
            if family == "xlm-roberta":
                pieces = _with_ids_of_fairseq(pieces, path)
            arguments = {"pieces": pieces, "family": family, "character_map": character_map}
            symbols = set(symbols) - {*SPECIAL_TOKENS[family].tokens.values()}
            _check_symbols(symbols, family, path)
            options = cls._options(read_settings(folder))
            lowercase = options.get("lowercase", family == "albert")
            kept = options.get("keep_accents", False) and family != "xlnet"
            rules = _rules_of_family(family, lowercase, kept, character_map)
            return arguments | {"rules": _sparing(symbols, rules, character_map)}, {}
        content = read_engine(folder, "Unigram")
        pieces = [tuple(piece) for piece in content["model"]["vocab"]]
        # Special tokens, such as DeBERTa's [MASK], may follow the pieces.
        late = sorted((t["id"], t["content"]) for t in content.get("added_tokens", []))
        special = SPECIAL_TOKENS[family].tokens.values()
        pieces += [(t, 0.0) for i, t in late if i >= len(pieces) and t in special]
        steps = {step.get("type"): step for step in _steps(content.get("normalizer"))}
        settings = {
            "do_lower_case": "Lowercase" in steps,
            "keep_accents": "StripAccents" not in steps,
        }
        arguments = {"pieces": pieces, "family": family}
        if "Precompiled" in steps:
            map_of_file = steps["Precompiled"]["precompiled_charsmap"]
            arguments["character_map"] = base64.b64decode(map_of_file)
        if family == "xlm-roberta" or is_by_file(folder, family):
            arguments["rules"] = {name: content.get(name) for name in RULES}
        return arguments, settings

    def settings(self):
        # `transformers` builds the family's class with the family's rules, whatever the file has.
        own_rules = {"tokenizer_class": f"{BY_FILE[0]}Fast"} if self.rules else {}
        if self.rules and self.family == "xlnet":
            own_rules["padding_side"] = "left"  # as in its class: the last token is [CLS]
        return super().settings() | own_rules

    def files(self):
        """Return tokenizer.json; or, for Marian, both SentencePiece files and vocab.json."""
        if self.family != "marian":
            return {"tokenizer.json": self.to_json()}
        model = _sentencepiece_bytes(self.pieces, self.special_tokens.tokens, self.character_map)
        ids = as_json({piece: i for i, (piece, _) in enumerate(self.pieces)})
        return {"source.spm": model, "target.spm": model, "vocab.json": ids}


def train_unigram(texts, vocabulary_size, family="albert", lowercase=None, keep_accents=None):
    """Train unigram pieces on texts.

    Args:
        texts: a list of strings.
        vocabulary_size: the maximum number of pieces, including special tokens.
        family, lowercase: as in `UnigramTokenizer`.
        keep_accents: whether ALBERT or XLNet keeps accents, and Hangul syllables whole, which are
            split into letters (jamo) otherwise; where None, ALBERT does.

    Returns:
        A `UnigramTokenizer`.
    """
    tokens = SPECIAL_TOKENS[family].tokens
    lowercase = family == "albert" if lowercase is None else lowercase
    keep_accents = family == "albert" if keep_accents is None else keep_accents
    character_map = None
    if family in ("marian", "xlm-roberta"):
        character_map = _compiled_normalization("nmt_nfkc_cf" if lowercase else "nmt_nfkc")
    rules = _rules_of_family(family, lowercase, keep_accents, character_map)
    engine = _engine(models.Unigram(), rules)
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary_size,
        special_tokens=list(dict.fromkeys(tokens.values())),
        unk_token=tokens["unk_token"],
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
    if family == "xlm-roberta":  # whose mask is behind the pieces
        pieces.sort(key=lambda piece: piece[0] == tokens["mask_token"])
    rules = _content_of_rules(rules)
    return UnigramTokenizer(pieces, family, lowercase, keep_accents, character_map, rules=rules)


def _engine(model, rules):
    """Return an engine of a model, and of a normaliser and a pre-tokenizer."""
    engine = tokenizers.Tokenizer(model)
    engine.normalizer, engine.pre_tokenizer = rules
    return engine


def _rules_of_family(family, lowercase, keep_accents, character_map):
    """Return normaliser and pre-tokenizer of the family's tokenizer of `transformers`."""
    spaces = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    steps = [normalizers.Precompiled(character_map)] if character_map else []
    if family == "marian":
        # As in SentencePiece: apply its map, then collapse and strip spaces.
        steps += [_replaced(" {2,}", " "), _replaced("^ +| +$", "")]
    elif family == "deberta-v2":
        steps = [normalizers.Lowercase()] if lowercase else []
        steps += [_replaced(r"\s{2,}|[\n\r\t]", " "), normalizers.NFC()]
        steps.append(normalizers.Strip(left=False, right=True))
    else:
        spaces = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces])
    if family in ("albert", "xlnet"):
        last = [*([normalizers.Lowercase()] if lowercase else []), *steps]
        steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
        if not keep_accents:
            steps += [normalizers.NFKD(), normalizers.StripAccents()]
        steps += last
    return normalizers.Sequence(steps), spaces


def _read_rules(rules):
    """Return normaliser and pre-tokenizer of the JSON content of a tokenizer.json."""
    content = json.loads(tokenizers.Tokenizer(models.WordLevel()).to_str()) | rules
    try:
        engine = tokenizers.Tokenizer.from_str(json.dumps(content))
    except Exception as e:  # the engine raises plain Exception
        raise InputError(
            f"tokenizer.json has a normalizer or a pre_tokenizer that `tokenizers` does not know "
            f"({e}); copy the file again, or update the package."
        ) from None
    return engine.normalizer, engine.pre_tokenizer


def _sparing(symbols, rules, character_map):
    """Return the JSON content of rules whose normaliser leaves symbols as they are."""
    strictest, _ = _rules_of_family("albert", True, False, character_map)
    # A space is "▁" before pieces are looked up, in SentencePiece too.
    changed = sorted(s for s in symbols if " " not in s and strictest.normalize_str(s) != s)
    changed.sort(key=len, reverse=True)
    # While a text is normalised, characters for private use stand for them; long ones first.
    marks = [(symbol, chr(0xF0000 + i)) for i, symbol in enumerate(changed)]
    steps = [_replaced_in_json(symbol, mark) for symbol, mark in marks]
    content = _content_of_rules(rules)
    steps += content["normalizer"]["normalizers"]
    steps += [_replaced_in_json(mark, symbol) for symbol, mark in marks]
    return content | {"normalizer": {"type": "Sequence", "normalizers": steps}}


def _replaced_in_json(text, by):
    return {"type": "Replace", "pattern": {"String": text}, "content": by}


def _check_symbols(symbols, family, path):
    """Raise an `InputError` for white space as a symbol, which most families split texts at."""
    for symbol in sorted(symbols):
        if family != "deberta-v2" and any(c.isspace() for c in symbol.replace(" ", "")):
            raise InputError(
                f"{path} has the user-defined piece {symbol!r}, but {family} splits texts at "
                "white space; give a tokenizer without it."
            )


def _content_of_rules(rules):
    """Return a normaliser and a pre-tokenizer as a dict of JSON content."""
    content = json.loads(_engine(models.WordLevel(), rules).to_str())
    return {name: content[name] for name in RULES}


def _steps_of_rules(rules):
    return [_steps(part) for part in _content_of_rules(rules).values()]


def _steps(part):
    """Return the steps of a section of a tokenizer.json, which is a sequence, one step or None."""
    lists = [value for value in (part or {}).values() if isinstance(value, list)]
    return lists[0] if lists else [part] if part else []


def _replaced(pattern, text):
    return normalizers.Replace(tokenizers.Regex(pattern), text)


def _with_ids_of_fairseq(pieces, path):
    """Return the pieces of XLM-R's SentencePiece model in order of the model's ids.

    Its special tokens are fairseq's (`fairseq/data/dictionary.py`), and the mask is the last one.
    """
    first = [piece for piece, _ in pieces[: len(FIRST_PIECES)]]
    if first != FIRST_PIECES:
        raise InputError(
            f"{path} begins with the pieces {', '.join(first)} in place of "
            f"{', '.join(FIRST_PIECES)}; give the SentencePiece model of an XLM-RoBERTa."
        )
    special = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    return [*special, *pieces[len(FIRST_PIECES) :], ("<mask>", 0.0)]


def sentencepiece_package():
    """Import `sentencepiece` and its protobuf messages; the device runtime lacks both."""
    import sentencepiece.sentencepiece_model_pb2

    return sentencepiece


def read_sentencepiece(path):
    """Read a SentencePiece unigram model.

    Returns:
        The pieces with their scores, the compiled normalisation or None, and the user-defined
        pieces. The scores of these are those that SentencePiece gives them, by which they are
        kept whole (`unigram_model.cc`).

    Raises:
        InputError: if the file is missing or broken, or not a unigram model.
    """
    from google.protobuf.message import DecodeError

    check_file(path)
    model = sentencepiece_package().sentencepiece_model_pb2.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
        is_unigram = model.trainer_spec.model_type == model.trainer_spec.UNIGRAM
    except DecodeError:
        is_unigram = False
    if not is_unigram:
        raise InputError(f"{path} is no SentencePiece unigram model; copy the file again.")
    for settings, expected in (
        (model.trainer_spec, {"byte_fallback": False, "treat_whitespace_as_suffix": False}),
        (model.normalizer_spec, {"add_dummy_prefix": True, "escape_whitespaces": True}),
    ):
        for name, value in expected.items():
            if getattr(settings, name) != value:
                raise InputError(
                    f"{path} was trained with {name}={not value}, which tfnlp does not read; give "
                    "a tokenizer without it."
                )
    kinds = model.SentencePiece
    best = max((p.score for p in model.pieces if p.type == kinds.NORMAL), default=0.0)
    symbols = [p.piece for p in model.pieces if p.type == kinds.USER_DEFINED]
    pieces = [(p.piece, p.score) for p in model.pieces]
    scores = dict(pieces) | {s: len(s.encode()) * best - 0.1 for s in symbols}
    character_map = model.normalizer_spec.precompiled_charsmap or None
    return list(scores.items()), character_map, symbols


def _sentencepiece_bytes(pieces, tokens, character_map):
    """Return the contents of a SentencePiece model file, the inverse of `read_sentencepiece`."""
    model = sentencepiece_package().sentencepiece_model_pb2.ModelProto()
    names = [piece for piece, _ in pieces]
    kinds, unknown = model.SentencePiece, tokens["unk_token"]
    special = dict.fromkeys(tokens.values(), kinds.CONTROL) | {unknown: kinds.UNKNOWN}
    for piece, score in pieces:
        model.pieces.add(piece=piece, score=score, type=special.get(piece, kinds.NORMAL))
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    trainer.model_type, trainer.vocab_size = trainer.UNIGRAM, len(pieces)
    trainer.unk_id, trainer.unk_piece = names.index(unknown), unknown
    trainer.bos_id = trainer.eos_id = trainer.pad_id = -1
    normalizer.name = "user_defined"
    normalizer.precompiled_charsmap = character_map or b""
    return model.SerializeToString(deterministic=True)


def _compiled_normalization(rule):
    """Return a normalisation rule of SentencePiece, such as "nmt_nfkc", compiled to bytes."""
    package = sentencepiece_package()
    spec = package.sentencepiece_model_pb2.NormalizerSpec()
    normalizer = package.SentencePieceNormalizer(rule_name=rule)
    spec.ParseFromString(normalizer.serialized_normalizer_spec())
    return spec.precompiled_charsmap
