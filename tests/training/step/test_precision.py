"""A dtype policy is tried in a process of its own before a training."""

import signal
import subprocess

import pytest

from tfnlp.training.step import precision
from tfnlp.utils.errors import InputError


@pytest.fixture
def probe(monkeypatch):
    """Set the status and the output of that process."""

    def set_result(status, output=""):
        result = subprocess.CompletedProcess([], status, output)
        monkeypatch.setattr(precision.subprocess, "run", lambda *args, **kwargs: result)

    return set_result


def test_a_type_that_the_processor_refuses_is_named(probe):
    probe(-signal.SIGILL)
    with pytest.raises(InputError, match=r"teacher_precision=mixed_bfloat16 .*illegal"):
        precision.check_precision("mixed_bfloat16", "teacher_precision")


def test_a_type_that_the_processor_emulates_is_warned_about(probe, caplog):
    probe(0, "notice\n1.2\n")
    precision.check_precision("mixed_bfloat16")
    assert not caplog.messages
    probe(0, "5.1\n")
    precision.check_precision("mixed_bfloat16")
    assert "precision=mixed_bfloat16" in caplog.text and "5 times" in caplog.text


def test_the_probe_prints_a_number(capsys):
    exec(precision._PROBE.format(dtype="float32"), {})
    assert float(capsys.readouterr().out) > 0
