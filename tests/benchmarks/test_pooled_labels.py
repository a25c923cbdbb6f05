import subprocess
import sys

from tests.conftest import ROOT


def test_probabilities_of_two_models_are_pooled(tmp_path):
    """Naive Bayes has odds of 2 for each word's own label; those pooled are the root of both."""
    train, said, output = (str(tmp_path / f"{name}.tsv") for name in ("train", "said", "pooled"))
    with open(train, "w", encoding="utf-8") as file:
        file.write("sentence\tlabel\ngood\t1\nbad\t0\n")
    with open(said, "w", encoding="utf-8") as file:
        file.write("sentence\t0\t1\ngood\t0.2\t0.8\nbad\t0.5\t0.5\n")
    command = [sys.executable, "-m", "benchmarks.pooled_labels", f"--train={train}"]
    command += [f"--input={train}", f"--said={said}", "--linear=words/naive_bayes"]
    done = subprocess.run(
        [*command, f"--output={output}"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "words/naive_bayes\t100.00\nall\t100.00\n" in done.stdout
    with open(output, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    assert rows == [
        ["sentence", "0", "1"],
        ["good", "0.261204", "0.738796"],  # odds of 8 ** 0.5
        ["bad", "0.585786", "0.414214"],  # of 2 ** 0.5
        ["good", "0", "1"],
        ["bad", "1", "0"],
    ]
