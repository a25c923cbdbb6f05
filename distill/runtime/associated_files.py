"""Associated files of a .tflite: a zip archive appended to the model.

The settings hold the SHA-256 of the model, and the archive has a checksum of each file. A damaged
file is thus detected before LiteRT opens it. The files are not compressed: none is larger than the
.tflite that holds it.
"""

import hashlib
import io
import json
import pathlib
import zipfile

from tfnlp.tasks.kinds import KINDS
from tfnlp.utils.errors import InputError

LABELS_FILE = "labels.txt"
VOCABULARY_FILE = "vocab.txt"
SETTINGS_FILE = "tokenizer_config.json"
TOKENIZER_FILE = "tokenizer.json"
TARGET_TOKENIZER_FILE = "target_tokenizer.json"  # of a translator with two tokenizers
MARIAN_FILE = "source.spm"  # or a Marian's pair of SentencePiece models
SENTENCEPIECE_FILE = "spiece.model"  # bytes, for MediaPipe alone

CHECKSUM = "model_sha256"  # among the settings
PIECE = 1 << 20  # bytes to read at a time, to keep the model out of memory


def add_files(model, settings, files):
    """Append the settings and other files to a .tflite model.

    Args:
        model: the bytes of the .tflite, with its metadata.
        settings: a dict, of the tokenizer and the model.
        files: {name: text or bytes} of the others.

    Returns:
        The bytes of the new .tflite.
    """
    settings = settings | {CHECKSUM: hashlib.sha256(model).hexdigest()}
    buffer = io.BytesIO(model)
    # Stored, not deflated, since runtimes read the files in place.
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_STORED) as archive:
        for name, content in {SETTINGS_FILE: json.dumps(settings), **files}.items():
            # A fixed date makes the file reproducible.
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def read_files(path):
    """Read the settings and the other files of a .tflite file.

    Returns:
        The settings, a dict, and {name: text} of the others, bytes for Marian's SentencePiece
        models.

    Raises:
        InputError: if the file is missing, has no tokenizer inside, or is damaged.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise InputError(f"{path} is no file; give a .tflite file of recipes.export_tflite.")
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise zipfile.BadZipFile
            files = {member.filename: archive.read(member) for member in members}
            model_size = min(member.header_offset for member in members)
        files.pop(SENTENCEPIECE_FILE, None)
        files = {
            name: content if name.endswith(".spm") else content.decode("utf-8")
            for name, content in files.items()
        }
        settings = json.loads(files.pop(SETTINGS_FILE))
        whole = settings[CHECKSUM] == _sha256(path, model_size)
    except Exception:  # zipfile raises many types of errors for damaged files
        whole = False
    if not whole or not files.keys() & {VOCABULARY_FILE, TOKENIZER_FILE, MARIAN_FILE}:
        raise InputError(
            f"{path} is no whole .tflite with a tokenizer inside: another program wrote it, or it "
            "is cut short or damaged; export it with recipes.export_tflite, or copy it again."
        )
    return settings, files


def check_kind(path, settings, wanted=None):
    """Return the `Kind` of a file.

    Raises:
        InputError: if it is not the `wanted` kind or, where that is None, does not take ids.
    """
    if "kind" not in settings:
        raise InputError(f"{path} does not say what it is for; export it again.")
    kind = KINDS.get(settings["kind"])
    if kind is None or (kind != wanted if wanted else not kind.reads_ids):
        runner = f"distill.runtime.{kind.runner}" if kind else "a newer version"
        raise InputError(f"{path} is of the kind {settings['kind']}; use {runner}.")
    return kind


def _sha256(path, size):
    """Return the SHA-256 of the first `size` bytes of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for start in range(0, size, PIECE):
            digest.update(file.read(min(PIECE, size - start)))
    return digest.hexdigest()
