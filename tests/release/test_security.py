"""SECURITY.md holds of the code: nothing that runs what a file says is called."""

import ast
import pathlib

import numpy as np
import pytest

from tfnlp.corpora.shards import read_array

ROOT = pathlib.Path(__file__).parents[2]
FILES = [path for name in ("tfnlp", "distill", "recipes") for path in (ROOT / name).rglob("*.py")]
# Calls that can run what they read.
RUNS_DATA = {
    *("eval", "exec", "pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.loads"),
    *("torch.load", "joblib.load", "shelve.open", "os.system", "os.popen", "pd.read_pickle"),
    *("keras.saving.load_model", "keras.models.load_model", "yaml.unsafe_load", "yaml.full_load"),
}
UNSAFE = {"allow_pickle": True, "shell": True, "safe_mode": False, "trust_remote_code": True}
MODULES = {"dill", "cloudpickle", "joblib", "marshal", "shelve"}


def breaches(source):
    """Return what of a file's code may run data, a list of lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in RUNS_DATA or (
                name == "yaml.load" and "_TextLoader" not in ast.unparse(node)
            ):
                found.append(name)
            for word in node.keywords:
                unsafe = word.arg in UNSAFE and not isinstance(word.value, ast.Constant)
                if unsafe or (word.arg in UNSAFE and word.value.value == UNSAFE[word.arg]):
                    found.append(word.arg)
        elif isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name in MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module in (*MODULES, "pickle"):
            found.append(node.module)
    return found


def test_no_code_runs_what_it_reads():
    assert len(FILES) > 350
    found = {str(path): breaches(path.read_text("utf-8")) for path in FILES}
    # A worker unpickles what the process that started it has pickled, as multiprocessing does.
    assert found.pop(str(ROOT / "tfnlp/utils/worker_pool.py")) == ["pickle.loads"]
    assert {path: names for path, names in found.items() if names} == {}


def test_breaches_are_seen():
    source = "import joblib\nnp.load(p, allow_pickle=True)\nyaml.load(x, Loader)\nmodel.eval()"
    assert breaches(source) == ["joblib", "allow_pickle", "yaml.load"]
    source = "subprocess.run(x, shell=flag)\nfrom pickle import loads\npickle.dumps(x)\neval(x)"
    assert sorted(breaches(source)) == ["eval", "pickle", "shell"]


def test_an_array_of_objects_is_not_opened(tmp_path):
    path = tmp_path / "shard-00000.ids.npy"
    np.save(path, np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"Object arrays cannot|Python objects"):
        read_array(tmp_path, {"tokens": 1}, 0, "ids", check=False)
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        read_array(tmp_path, {"tokens": 0}, 0, "ids", check=False)
