"""Features are written from the shell."""

import numpy as np


def test_features_are_written(teacher, corpus, run, tmp_path):
    texts = corpus[1].removeprefix("--dev=")
    flags = [f"--model_dir={teacher[0] / 'best'}", f"--input={texts}"]
    run("extract_features", *flags, f"--output={tmp_path / 'f.npz'}")
    assert np.load(tmp_path / "f.npz")["features"].shape == (64, 32)
    nowhere = ["--model_dir=/nowhere", flags[1]]  # told before a model is looked for
    done = run("extract_features", *nowhere, f"--output={tmp_path / 'f.txt'}", status=2)
    assert "must end in .npz or .parquet" in done.stderr
