"""TensorFlow's converter to .tflite, in one place, as `tf.lite` is to leave TensorFlow."""

import tensorflow as tf

from tfnlp.utils.native_notices import without_notices


def convert(folder, signatures=None, optimizations=(), weight_type=None, custom_operators=False):
    """Convert a SavedModel to a .tflite.

    Args:
        folder: of the SavedModel.
        signatures: names of its signatures; "serving_default" where None.
        optimizations: names of `tf.lite.Optimize`.
        weight_type: of the weights, a `tf.DType`, with the optimization "DEFAULT"; 8-bit integers
            where None.
        custom_operators: whether operations outside TFLite's own are allowed.

    Returns:
        The bytes of the file.
    """
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder), signature_keys=signatures)
    # Otherwise signatures of fixed length alone fold the scales of norms into the following
    # weights: they would not share weights with the others, and round worse to 8 bits.
    converter._experimental_disable_fuse_mul_and_fc = True
    converter.allow_custom_ops = custom_operators
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.optimizations = [tf.lite.Optimize[name] for name in optimizations]
    if weight_type is not None:
        converter.target_spec.supported_types = [weight_type]
    with without_notices():
        return converter.convert()
