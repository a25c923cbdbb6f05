"""Answers of an exported file on an emulated ARM processor, and the operators it is made of.

    apt-get install qemu-user-static
    dpkg --add-architecture arm64 && apt-get update
    apt-get download python3.11-minimal:arm64 libpython3.11-minimal:arm64 \\
        libpython3.11-stdlib:arm64 libc6:arm64 libexpat1:arm64 zlib1g:arm64 libgcc-s1:arm64 \\
        libstdc++6:arm64 libssl3:arm64 libffi8:arm64
    for package in *_arm64.deb; do dpkg -x $package arm; done
    pip install --target=arm/packages --only-binary=:all: --implementation=cp \\
        --python-version=3.11 --platform=manylinux_2_28_aarch64 \\
        --platform=manylinux_2_27_aarch64 --platform=manylinux2014_aarch64 \\
        --requirement=runtime/requirements.txt
    python -m benchmarks.arm_emulation --model=model.tflite --input=dev.tsv --sysroot=arm

The texts go through the whole of `distill.runtime` here and on each of `PROCESSORS`. Which of
ARM's instructions for products ran is read from the emulator's log; an emulation says whether
they are right, and nothing about their speed. QEMU 7.2 computes SME's wrongly; 10.0
(bookworm-backports) gets them right.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
from absl import flags

from recipes.shell import entry_point
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "The .tflite file.")
flags.DEFINE_string("input", None, "File with texts.")
flags.DEFINE_integer("num_texts", 20, "Texts to run.", 1)
flags.DEFINE_string("sysroot", None, "Folder of the unpacked ARM packages, with `packages` in it.")
flags.DEFINE_string("qemu", "qemu-aarch64-static", "The emulator.")
flags.DEFINE_string("output_dir", None, "Folder to write arm.json into.")
flags.mark_flags_as_required(["model", "input", "sysroot", "output_dir"])

# Run here and in the emulator, where neither TensorFlow nor absl is installed.
RUNNER = """
import json, platform, sys
from distill.runtime.litert_backend import LiteRtBackend
path, texts = json.load(sys.stdin)
backend = LiteRtBackend(path)
outputs = backend.run(backend.tokenizer.encode(texts, max_length=backend.max_length))
arrays = [{name: value.tolist() for name, value in x.items()} for x in outputs]
print(json.dumps([platform.machine(), arrays]))
"""
# XNNPACK reads the processor from /proc/cpuinfo, where QEMU shows x86's, and crashes.
CPUINFO = """processor : 0
CPU implementer : 0x41
CPU architecture: 8
CPU variant : 0x1
CPU part : {part}
CPU revision : 0
"""
# By what they have for products of int8: QEMU's name, and the part's number in cpuinfo.
PROCESSORS = {
    "no dot products (Cortex-A53)": ("cortex-a53", "0xd03"),
    "dot products (Cortex-A76)": ("cortex-a76", "0xd0b"),
    "matrix products (i8mm, as Neoverse V1)": ("max,sme=off", "0xd40"),
    "SME": ("max", "0xd40"),
}
INSTRUCTION = re.compile(r"0x[0-9a-f]+: +([0-9a-f]{8}) ")
# {instruction: (mask, bits)} of products; QEMU's own disassembler does not know all of them.
PRODUCTS = {
    "smlal by element": (0xBF00F400, 0x0F002000),
    "sdot": (0xBFE0FC00, 0x0E809400),
    "sdot by element": (0xBFC0F400, 0x0F80E000),
    "smmla": (0xFFE0FC00, 0x4E80A400),
    "smopa": (0xFFE0001C, 0xA0800000),
}


def main():
    from tfnlp.text import read_examples
    from tfnlp.utils.files import write_json

    figures = {"operators": count_operators(FLAGS.model)}
    for name, count in figures["operators"].items():
        print(f"{count:5} {name}")
    texts = read_examples(FLAGS.input).texts[: FLAGS.num_texts]
    machine, expected = run([sys.executable], texts)
    for name, (processor, part) in PROCESSORS.items():
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "instructions"
            emulated, found = run(emulator(processor, part, log), texts)
            kinds = instructions(log)
        figures[name] = compare(expected, found) | {"instructions": kinds}
        print(
            f"{emulated}, {name}: outputs {figures[name]['apart']:.2g} from those of {machine} at "
            f"most, the same largest one for {figures[name]['same']} of {len(texts)}; {kinds}"
        )
    write_json(pathlib.Path(FLAGS.output_dir) / "arm.json", figures)


def count_operators(path):
    """Return {operator, with the types of its weights: count} of the file's first signature."""
    from ai_edge_litert import schema_py_generated as schema

    kinds = {v: k for k, v in vars(schema.BuiltinOperator).items()}
    types = {v: k for k, v in vars(schema.TensorType).items()}
    content = pathlib.Path(path).read_bytes()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    graph, counts = model.subgraphs[0], collections.Counter()
    for operator in graph.operators:
        kind = kinds[model.operatorCodes[operator.opcodeIndex].builtinCode]
        tensors = [graph.tensors[i] for i in operator.inputs if i >= 0]
        weights = {types[x.type] for x in tensors if np.size(model.buffers[x.buffer].data) > 64}
        counts[" ".join([kind, *sorted(weights)])] += 1
    return dict(counts.most_common())


def emulator(processor, part, log):
    """Return the command of an emulated Python, which logs the instructions it translates."""
    root = pathlib.Path(FLAGS.sysroot).resolve()
    python = sorted(root.glob("usr/bin/python3.*"))
    if not python:
        raise InputError(f"{root} has no usr/bin/python3.*; unpack ARM's packages into it.")
    cpuinfo = root / "proc" / "cpuinfo"
    cpuinfo.parent.mkdir(exist_ok=True)
    cpuinfo.write_text(CPUINFO.format(part=part), "utf-8")
    variables = {"PYTHONHOME": root / "usr", "PYTHONPATH": f"{pathlib.Path.cwd()}:{root}/packages"}
    options = [option for pair in variables.items() for option in ("-E", "=".join(map(str, pair)))]
    logging = ["-d", "in_asm", "-D", log]
    return [FLAGS.qemu, "-cpu", processor, "-L", root, *options, *logging, python[0]]


def run(python, texts):
    """Run the texts with a Python; return its machine, and the outputs of each by name."""
    process = subprocess.run(
        [*map(str, python), "-c", RUNNER],
        input=json.dumps([str(pathlib.Path(FLAGS.model).resolve()), texts]),
        env=os.environ | {"PYTHONPATH": str(pathlib.Path.cwd())},
        check=False,
        capture_output=True,
        text=True,
    )
    if process.returncode:
        raise InputError(f"{python[0]} failed: {process.stderr.strip()[-500:]}")
    return json.loads(process.stdout.splitlines()[-1])


def instructions(log):
    """Count the translated instructions of `PRODUCTS`, each place in the code once."""
    counts = collections.Counter()
    with log.open(errors="replace") as lines:
        for match in filter(None, map(INSTRUCTION.match, lines)):
            bits = int(match[1], 16)
            counts.update(k for k, (mask, value) in PRODUCTS.items() if bits & mask == value)
    return dict(counts)


def compare(expected, found):
    """Return how far outputs are apart, and how many texts have the same largest one."""
    apart, same = 0.0, 0
    for one, other in zip(expected, found, strict=True):
        pairs = [(np.array(value), np.array(other[name])) for name, value in one.items()]
        apart = max(apart, *(float(np.abs(a - b).max()) for a, b in pairs))
        same += all((a.argmax(-1) == b.argmax(-1)).all() for a, b in pairs)
    return {"apart": apart, "same": same}


if __name__ == "__main__":
    entry_point.run(main)
