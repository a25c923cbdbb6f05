"""Features are written from the shell."""

import numpy as np

from tests.recipes.refusals import refusals


def test_features_are_written(teacher, corpus, run, tmp_path):
    texts = corpus[1].removeprefix("--dev=")
    flags = [f"--model_dir={teacher[0] / 'best'}", f"--input={texts}"]
    run("extract_features", *flags, f"--output={tmp_path / 'f.npz'}")
    assert np.load(tmp_path / "f.npz")["features"].shape == (64, 32)
    (said,) = refusals("extract_features", [[*flags, f"--output={tmp_path / 'f.txt'}"]])
    assert "must end in .npz or .parquet" in said
