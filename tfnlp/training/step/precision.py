"""Dtype policy of a training, tested before use."""

import signal
import subprocess
import sys

import keras
from absl import logging

from tfnlp.utils.errors import InputError

# Run in a separate process, since an illegal instruction kills the process. It prints the time of
# a product, as a share of that in float32.
_PROBE = """
import time
import tensorflow as tf

def seconds(dtype):
    a, times = tf.ones((256, 256), dtype), []
    for _ in range(5):
        start = time.perf_counter()
        (a @ a).numpy()
        times.append(time.perf_counter() - start)
    return min(times)

print(seconds("{dtype}") / seconds("float32"))
"""
# A share from which a processor is taken to emulate a type.
EMULATED = 4


def set_precision(policy):
    """Set the global Keras dtype policy.

    Args:
        policy: "float32", "mixed_bfloat16" or "mixed_float16".

    Raises:
        InputError: as `check_precision`.
    """
    check_precision(policy)
    keras.config.set_dtype_policy(policy)


def check_precision(policy, name="precision"):
    """Raise an InputError if the processor cannot multiply in the type of a dtype policy.

    A warning says that it emulates the type, at a fraction of float32's speed.

    Some virtual machines announce AMX but refuse it. The first bfloat16 product then ends the
    process with an illegal instruction, so a product is tried in a separate process.

    Args:
        policy: of Keras, such as "mixed_bfloat16" or "bfloat16".
        name: the argument's name in the error message.
    """
    if policy == "float32":
        return
    code = _PROBE.format(dtype=policy.removeprefix("mixed_"))
    process = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    if process.returncode:
        illegal = process.returncode == -signal.SIGILL
        reason = "illegal instruction" if illegal else "see TensorFlow's own message"
        raise InputError(
            f"{name}={policy} does not work on this processor ({reason}); use float32, or "
            "set the environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16."
        )
    share = float(process.stdout.split()[-1])
    if share > EMULATED:
        logging.warning(
            "%s=%s: this processor has no such products, and takes %.0f times as long for one as "
            "in float32.",
            *(name, policy, share),
        )
