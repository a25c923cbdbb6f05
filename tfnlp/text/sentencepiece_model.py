"""SentencePiece's own files: pieces, scores and the compiled normalisation of texts.

`sentencepiece` is imported when a file is read or written: a device runtime lacks it.
"""

from tfnlp.errors import InputError


def read_sentencepiece(path):
    """The pieces of a SentencePiece model, and its compiled normalisation or None.

    Raises:
        InputError: if the file is broken, or no unigram model.
    """
    from google.protobuf.message import DecodeError
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError:
        raise InputError(f"{path} is no SentencePiece model; copy the file again.") from None
    if model.trainer_spec.model_type != model.trainer_spec.UNIGRAM:
        raise InputError(f"{path} is a SentencePiece model, but not a unigram one.")
    pieces = [(piece.piece, piece.score) for piece in model.pieces]
    return pieces, model.normalizer_spec.precompiled_charsmap or None


def sentencepiece_bytes(pieces, unknown, special, character_map):
    """A SentencePiece model's file, of which `read_sentencepiece` gives the same again.

    Args:
        pieces: (piece, log probability) in order of their ids.
        unknown: the piece that stands for what is none.
        special: the other pieces that are no text.
        character_map: the compiled normalisation, bytes; or None.
    """
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    kinds = model.SentencePiece
    for piece, score in pieces:
        kind = kinds.CONTROL if piece in special else kinds.NORMAL
        kind = kinds.UNKNOWN if piece == unknown else kind
        model.pieces.add(piece=piece, score=score, type=kind)
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    trainer.model_type, trainer.vocab_size = trainer.UNIGRAM, len(pieces)
    names = [piece for piece, _ in pieces]
    trainer.unk_id, trainer.unk_piece = names.index(unknown), unknown
    trainer.bos_id = trainer.eos_id = trainer.pad_id = -1
    normalizer.name = "user_defined"
    normalizer.precompiled_charsmap = character_map or b""
    return model.SerializeToString(deterministic=True)


def compiled_normalization(rule):
    """SentencePiece's own normalisation of a name, such as "nmt_nfkc", as bytes."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    spec = sentencepiece_model_pb2.NormalizerSpec()
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name=rule)
    spec.ParseFromString(normalizer.serialized_normalizer_spec())
    return spec.precompiled_charsmap
