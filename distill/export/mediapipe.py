"""MediaPipe compatibility: its tokenizers' rules, and where they differ from a tokenizer's."""

import functools
import string
import unicodedata

from sentencepiece import sentencepiece_model_pb2

from distill.export.character_rules import (
    CODE_POINTS,
    SEPARATOR,
    compile_rules,
    decompiled,
    normalized,
    ranges,
    rules_of,
    word_rules,
)
from tfnlp.text import UnigramTokenizer, WordPieceTokenizer

# Unicode blocks of CJK ideographs, each of which is a word of its own.
IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
# White space as Unicode defines it, a subset of `str.isspace`.
SPACES = [*"\t\n\v\f\r \x85"] + [
    c for c in map(chr, CODE_POINTS) if unicodedata.category(c)[0] == "Z"
]
# Sentences on differing characters, by the kind of difference.
SENTENCES = {
    "removed": (
        "MediaPipe keeps {} characters that the tokenizer removes ({}); remove them before, or "
        "run the file by distill.runtime."
    ),
    "split": (
        "MediaPipe does not end words at {} characters where the tokenizer does ({}); put spaces "
        "in their place or around them before, or run the file by distill.runtime."
    ),
    "joined": (
        "MediaPipe ends words at {} characters that are parts of words to the tokenizer ({}); run "
        "the file by distill.runtime where texts have them."
    ),
    "changed": (
        "MediaPipe reads {} characters in another case, or with accents, than the tokenizer ({}): "
        "it lowercases A-Z alone and strips nothing; run the file by distill.runtime, or learn a "
        "vocabulary with strip_accents=False."
    ),
}
ONE_SIGNATURE = (
    "MediaPipe takes files with one signature, so it cannot run this one; give it a file without "
    "`fixed_lengths` and `trainable_head`, or with one length and `fixed_only`."
)
ONE_TEXT = (
    "The model was trained on pairs of texts, and MediaPipe takes single texts, so it cannot run "
    "the file; use distill.runtime, or ids (docs/mobile.md)."
)


def frames_as_mediapipe(tokenizer):
    """Return whether a tokenizer is SentencePiece that frames a text as `[CLS] text [SEP]`."""
    if not isinstance(tokenizer, UnigramTokenizer):
        return False
    tokens = tokenizer.special_tokens.tokens
    return (tokens["cls_token"], tokens["sep_token"]) == ("[CLS]", "[SEP]")


def sentencepiece_model(tokenizer):
    """Return a `UnigramTokenizer` as a SentencePiece model, bytes.

    It has the pieces under their ids, and the tokenizer's normalisation as a compiled table.
    """
    model = sentencepiece_model_pb2.ModelProto()
    tokens = tokenizer.special_tokens.tokens
    unknown = tokens["unk_token"]
    kinds = dict.fromkeys(tokens.values(), model.SentencePiece.CONTROL)
    kinds[unknown] = model.SentencePiece.UNKNOWN
    for piece, score in tokenizer.pieces:
        model.pieces.add(piece=piece, score=score, type=kinds.get(piece, 1))
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    ids = {token: tokenizer.token_id(token) for token in kinds}
    model.trainer_spec.unk_id = ids[unknown]
    model.trainer_spec.unk_piece = unknown
    model.trainer_spec.bos_id = model.trainer_spec.eos_id = -1
    model.trainer_spec.pad_id = ids[tokens["pad_token"]]
    model.trainer_spec.pad_piece = tokens["pad_token"]
    model.normalizer_spec.precompiled_charsmap = compile_rules(sentencepiece_rules(tokenizer))
    return model.SerializeToString()


def mediapipe_differences(tokenizer):
    """Return sentences on texts that MediaPipe, and so a phone, tokenizes differently.

    Characters are compared by the rules of both tokenizers, see `differing_characters`. Two
    differences of every WordPiece are left out: a word above 100 bytes is [UNK] in MediaPipe, one
    above 100 characters here; and MediaPipe reads a text only up to its first U+0000.
    """
    if tokenizer.added_tokens:
        return [
            f"MediaPipe splits added tokens, such as {tokenizer.added_tokens[0].content!r}, into "
            "pieces; run the file by distill.runtime."
        ]
    if isinstance(tokenizer, WordPieceTokenizer):
        return [
            SENTENCES[kind].format(len(characters), ranges(characters))
            for kind, characters in differing_characters(tokenizer).items()
        ]
    if not frames_as_mediapipe(tokenizer):
        return [
            "MediaPipe has no tokenizer of this kind, so it cannot run the file; use "
            "distill.runtime, or a model with WordPiece."
        ]
    if not tokenizer.lowercase:
        return [
            "The tokenizer keeps capitals and MediaPipe lowercases A-Z: texts with capitals "
            "get other ids there."
        ]
    return []


def differing_characters(tokenizer):
    """Return the characters that MediaPipe reads differently from a `WordPieceTokenizer`.

    A character is left out if both readings are parts of words that the vocabulary cannot spell,
    since the word is then [UNK] in both.

    Returns:
        {a key of `SENTENCES`: list of characters}, without empty lists.
    """
    settings = tokenizer.lowercase, tokenizer.strip_accents, tokenizer.split_cjk
    return _differing(frozenset("".join(tokenizer.vocabulary)), *settings)


@functools.lru_cache(maxsize=2)  # files of one model are often exported several times
def _differing(letters, *settings):
    rules, mediapipe = word_rules(*settings), mediapipe_rules()
    differing = {kind: [] for kind in SENTENCES}
    for character in rules.keys() | mediapipe.keys():
        ours, theirs = (table.get(character, character) for table in (rules, mediapipe))
        if ours == theirs:
            continue
        if " " in ours + theirs or letters.issuperset(ours) or letters.issuperset(theirs):
            splits = " " in ours, " " in theirs
            kind = {(True, False): "split", (False, True): "joined"}.get(splits, "changed")
            differing[kind if ours else "removed"].append(character)
    return {kind: sorted(characters) for kind, characters in differing.items() if characters}


@functools.cache
def mediapipe_rules():
    """Return the rules of MediaPipe's WordPiece, in the form of `word_rules`.

    It lowercases A to Z, splits words at ASCII white space, and makes a word of each punctuation
    character and CJK ideograph (`bert_preprocessor_calculator.cc` and `bert_tokenizer.h`).
    """
    alone = {c for c in map(chr, CODE_POINTS) if unicodedata.category(c)[0] == "P"}
    alone |= {*string.punctuation}.union(*(map(chr, range(a, b + 1)) for a, b in IDEOGRAPHS))
    normal = dict(zip(string.ascii_uppercase, string.ascii_lowercase, strict=True))
    return rules_of(normal | dict.fromkeys("\t\n\f\r", " "), alone)


def sentencepiece_rules(tokenizer):
    """Return a `UnigramTokenizer`'s normalisation as rules for SentencePiece, {string: string}.

    They cover all code points, and the sequences whose normalisation differs from that of their
    code points: quotes that ALBERT merges, decomposed characters, two spaces, and those of the
    character map.
    """
    normalizer = tokenizer._engine.normalizer
    rules = normalized(normalizer)
    sequences = {unicodedata.normalize("NFD", c) for c in map(chr, CODE_POINTS)} | {"``", "''"}
    sequences |= {a + b for a in SPACES for b in SPACES}
    if tokenizer.character_map:
        sequences |= set(decompiled(tokenizer.character_map))
    sequences = sorted(s for s in sequences if len(s) > 1 and SEPARATOR not in s)
    for sequence, normal in normalized(normalizer, sequences).items():
        if normal != "".join(rules.get(c, c) for c in sequence):
            rules[sequence] = normal
    if tokenizer.family == "albert":  # its words end at all white space
        spaces = dict.fromkeys(SPACES, " ")
        rules = spaces | {c: "".join(spaces.get(x, x) for x in y) for c, y in rules.items()}
    return {key: value for key, value in rules.items() if key != value and "\0" not in key}
