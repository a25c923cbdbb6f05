"""SentencePiece model files: pieces, scores and the compiled normalisation.

`sentencepiece` is imported only when a file is read or written, as the device runtime lacks it.
"""

from tfnlp.utils.errors import InputError


def read_sentencepiece(path):
    """Read the pieces of a SentencePiece model and its compiled normalisation, or None.

    Raises:
        InputError: if the file is broken, or not a unigram model.
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
    """Return the contents of a SentencePiece model file, the inverse of `read_sentencepiece`.

    Args:
        pieces: (piece, log probability) in order of their ids.
        unknown: the unknown piece.
        special: the other special pieces.
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
    """Return a normalisation rule of SentencePiece, such as "nmt_nfkc", compiled to bytes."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    spec = sentencepiece_model_pb2.NormalizerSpec()
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name=rule)
    spec.ParseFromString(normalizer.serialized_normalizer_spec())
    return spec.precompiled_charsmap
