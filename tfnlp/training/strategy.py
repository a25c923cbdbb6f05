"""Where training runs: one device, or a copy on each of several."""

import tensorflow as tf

from tfnlp.errors import InputError

STRATEGIES = ("auto", "one_device", "mirrored")


def make_strategy(name="auto"):
    """A `tf.distribute` strategy.

    Args:
        name: "one_device" for the first GPU, or the CPU where there is none; "mirrored" for
            a copy of the model on every GPU (on every logical CPU where there is no GPU);
            "auto" for mirrored if there are several GPUs, else one device.

    Raises:
        InputError: for another name.
    """
    if name not in STRATEGIES:
        raise InputError(f"strategy={name} is unknown; use one of {', '.join(STRATEGIES)}.")
    gpus = tf.config.list_logical_devices("GPU")
    if name == "auto":
        name = "mirrored" if len(gpus) > 1 else "one_device"
    if name == "one_device":
        return tf.distribute.get_strategy()  # TensorFlow's default places all on one device
    return tf.distribute.MirroredStrategy(
        [d.name for d in gpus or tf.config.list_logical_devices("CPU")]
    )
