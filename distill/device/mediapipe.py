"""What MediaPipe's text tasks read of a file, and where they read texts otherwise."""

from tfnlp.text import UnigramTokenizer, WordPieceTokenizer

ONE_SIGNATURE = (
    "MediaPipe takes files with one signature, so it cannot run this one; give it a file without "
    "`fixed_lengths`, or with one and `fixed_only`."
)


def frames_as_mediapipe(tokenizer):
    """Whether a tokenizer is SentencePiece that frames a text as MediaPipe: `[CLS] text [SEP]`."""
    if not isinstance(tokenizer, UnigramTokenizer):
        return False
    tokens = tokenizer.special_tokens.tokens
    return (tokens["cls_token"], tokens["sep_token"]) == ("[CLS]", "[SEP]")


def sentencepiece_model(tokenizer):
    """A `UnigramTokenizer` as a SentencePiece model, bytes.

    It has the pieces under their ids, and the normalisation that such a file may hold: the
    compiled table. What the tokenizer does to texts besides is told by `mediapipe_differences`.
    """
    from sentencepiece import sentencepiece_model_pb2

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
    if tokenizer.character_map:
        model.normalizer_spec.precompiled_charsmap = tokenizer.character_map
    return model.SerializeToString()


def mediapipe_differences(tokenizer):
    """What MediaPipe's tokenizers, and so a phone, do otherwise: a list of sentences.

    MediaPipe lowercases A-Z and never strips accents. Its WordPiece splits at white space,
    punctuation and CJK ideographs; its SentencePiece normalises by the model's own table (its
    `bert_tokenizer.cc`, `sentencepiece_tokenizer.h` and `bert_preprocessor_calculator.cc`).
    """
    is_wordpiece = isinstance(tokenizer, WordPieceTokenizer)
    if not is_wordpiece and not frames_as_mediapipe(tokenizer):
        return [
            "MediaPipe has no tokenizer of this kind, so it cannot run the file; use "
            "distill.runtime, or a model with WordPiece."
        ]
    found = []
    if is_wordpiece:
        strips = tokenizer.strip_accents or (
            tokenizer.strip_accents is None and tokenizer.lowercase
        )
        keeps = "strip_accents=False"
    else:
        strips = tokenizer.family == "albert" and not tokenizer.keep_accents
        keeps = "keep_accents=True"
    if strips:
        found.append(
            "The tokenizer strips accents and MediaPipe does not: texts with accents, and all "
            f"Korean texts, get other ids there; train Korean vocabularies with {keeps}."
        )
    if not tokenizer.lowercase:
        found.append(
            "The tokenizer keeps capitals and MediaPipe lowercases A-Z: texts with capitals "
            "get other ids there."
        )
    if is_wordpiece and not tokenizer.split_cjk:
        found.append(
            "The tokenizer does not split CJK ideographs and MediaPipe does: texts with them "
            "get other ids there."
        )
    return found
