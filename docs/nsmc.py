"""The public file of NSMC that pages read, from what $TFNLP_DATA/nsmc has of it."""

import gzip
import os
import pathlib
import shutil

DATA = pathlib.Path(
    os.environ.get("TFNLP_DATA", pathlib.Path(__file__).parents[2] / "shared/data")
)
NSMC = DATA / "nsmc"


def write_ratings(folder):
    """Write `ratings_train.txt`: the file itself if it is there, or a cut of NSMC in its form.

    The cut has 20,000 and 2,000 labelled reviews, which pages learn and score by, and then 128,000
    whose labels it lacks, so that they get 0: pages read their texts alone.
    """
    path = folder / "ratings_train.txt"
    if (NSMC / path.name).exists():
        shutil.copy(NSMC / path.name, path)
        return
    labelled = gzip.decompress((NSMC / "train.tsv.gz").read_bytes()).splitlines()[1:]
    labelled += (NSMC / "dev.tsv").read_bytes().splitlines()[1:]
    texts = gzip.decompress((NSMC / "unlabelled.txt.gz").read_bytes()).splitlines()[:128000]
    rows = labelled + [text + b"\t0" for text in texts]
    lines = [b"%d\t%s\n" % (number, row) for number, row in enumerate(rows, 1)]
    path.write_bytes(b"id\tdocument\tlabel\n" + b"".join(lines))
