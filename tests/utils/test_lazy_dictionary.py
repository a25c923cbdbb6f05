"""Objects that are imported when they are asked for."""

import subprocess
import sys

from tfnlp.utils.lazy_dictionary import LazyDictionary


def test_objects_are_imported_one_by_one():
    code = (
        "import sys; from tfnlp.configs import FAMILIES; print(FAMILIES['bert'].__name__); "
        "print(*(m for m in sys.modules if m.startswith('tfnlp.configs.')), sep='\\n')"
    )
    lines = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert lines[0] == "BertConfig"
    modules = ("base_config", "bert_config", "sizes")
    assert sorted(lines[1:]) == [f"tfnlp.configs.{name}" for name in modules]


def test_it_joins_other_dictionaries():
    places = LazyDictionary({"join": "os.path:join"}) | {"split": "os.path:split"}
    assert [function.__name__ for function in places.values()] == ["join", "split"]
    assert "join" in places and len(places) == 2
