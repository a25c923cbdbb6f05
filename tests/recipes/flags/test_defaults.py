"""Defaults and bounds of flags, which commands and the runs that they resume rely on."""

import json
import pathlib
import subprocess
import sys

# {recipe: {flag: [default, least, most, choices]}}, each flag in one of the recipes that have it.
RECORDED = pathlib.Path(__file__).with_name("defaults.json")
# Flags are defined once a process; what all recipes import is loaded before.
CODE = """
import importlib, json, os, sys, absl.flags
from recipes.flags import distillation_flags, model_flags, objective_flags, training_flags
from tfnlp.tasks import classification, multi_label
for recipe, names in json.load(sys.stdin).items():
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    importlib.import_module(f"recipes.{recipe}")
    flags = [absl.flags.FLAGS[name] for name in names]
    limits = ("lower_bound", "upper_bound", "enum_values")
    rows = [[f.default, *(getattr(f.parser, x, None) for x in limits)] for f in flags]
    print(json.dumps([recipe, dict(zip(names, rows))]), flush=True)
    os._exit(0)
"""


def test_flags_keep_their_defaults_and_bounds():
    text = RECORDED.read_text("utf-8")
    lines = subprocess.check_output(
        [sys.executable, "-c", CODE], input=text, text=True, cwd=RECORDED.parents[3]
    )
    assert dict(map(json.loads, lines.splitlines())) == json.loads(text)
