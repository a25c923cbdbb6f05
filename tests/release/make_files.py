"""Make the files of this version that later versions must open, and the numbers they give.

    python -m tests.release.make_files

writes tests/release/files_of_VERSION/ anew, some 10 seconds after each release.
"""

import pathlib
import shutil
import tempfile
import tomllib

from tests.release.saved_files import PARTS, ROOT, found_in
from tfnlp.utils.files import write_json

PLACE = pathlib.Path(__file__).parent
# Stands for the folder in which the files were made.
NEUTRAL = "/files"
TEXT = (".json", ".jsonl", ".md", ".txt")


def main():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    target = PLACE / f"files_of_{project['version'].rpartition('.')[0]}"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        for part, (write, _, _) in PARTS.items():
            write(folder / part)
        for path in folder.rglob("*"):
            if path.suffix in TEXT:
                text = path.read_text("utf-8")
                path.write_text(text.replace(str(folder), NEUTRAL), encoding="utf-8")
        expected = {}
        for name, (path, read) in found_in(folder).items():
            with tempfile.TemporaryDirectory() as place:
                expected[name] = read(path, pathlib.Path(place))
        write_json(folder / "expected.json", expected)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {len(expected)} parts, {size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
