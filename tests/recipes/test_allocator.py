import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
CODE = """
import psutil
from recipes.allocator import keep_freed_memory

process = psutil.Process()
{call}
before = process.memory_info().rss
block = b"1" * 48_000_000
del block
print(process.memory_info().rss - before)
"""


def test_a_freed_block_stays_with_the_process():
    calls = {"keep_freed_memory()": platform.libc_ver()[0] == "glibc", "": False}
    for call, kept in calls.items():
        command = [sys.executable, "-c", CODE.format(call=call)]
        held = int(subprocess.check_output(command, cwd=ROOT))
        assert (held > 47e6) == kept
