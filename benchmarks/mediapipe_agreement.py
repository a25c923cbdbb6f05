"""Agreement of MediaPipe's TextClassifier with the Keras pipeline on the labels of raw texts.

    python -m venv mp && mp/bin/pip install mediapipe
    python -m benchmarks.mediapipe_agreement --mediapipe_python=mp/bin/python \\
        --model=runs/export/model.tflite --model_dir=runs/student/best --input=dev.tsv

MediaPipe runs in an environment of its own, without TensorFlow.
"""

import json
import subprocess

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("mediapipe_python", None, "Python of an environment with mediapipe.")
flags.DEFINE_string("model", None, "The .tflite file.")
flags.DEFINE_string("model_dir", None, "Folder of the Keras model it was exported from.")
flags.DEFINE_string("input", None, "File of texts.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.mark_flags_as_required(["mediapipe_python", "model", "model_dir", "input"])

# Script for MediaPipe's environment; reads texts and prints labels, as JSON.
MEDIAPIPE = """
import json, sys
from mediapipe.tasks.python import BaseOptions, text
options = text.TextClassifierOptions(base_options=BaseOptions(model_asset_path=sys.argv[1]))
with text.TextClassifier.create_from_options(options) as classifier:
    found = [classifier.classify(t).classifications[0].categories for t in json.load(sys.stdin)]
print(json.dumps([max(c, key=lambda x: x.score).category_name for c in found]))
"""


def main():
    import numpy as np

    entry_point.load_tensorflow()
    from distill.runtime import TextClassifier
    from tfnlp.checkpoints import load_model, read_labels
    from tfnlp.text import LengthBatches, WordPieceTokenizer, read_examples
    from tfnlp.training.run.inference import predict_batches

    texts = read_examples(FLAGS.input, FLAGS.text_column, label_column=None).texts
    done = subprocess.run(
        [FLAGS.mediapipe_python, "-c", MEDIAPIPE, FLAGS.model],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(done.stdout.splitlines()[-1])
    classifier = TextClassifier(FLAGS.model, num_threads=2)
    tokenizer = WordPieceTokenizer.from_folder(FLAGS.model_dir)
    encodings = tokenizer.encode(texts, max_length=classifier.max_length)
    model = load_model(FLAGS.model_dir, "classifier")
    logits = predict_batches(model, LengthBatches(encodings, 32))["logits"]
    labels = read_labels(FLAGS.model_dir)
    ours = [labels[i] for i in np.argmax(logits, 1)]
    runtime = [answer.label for answer in classifier.classify(texts)]
    for name, found in (("MediaPipe", theirs), ("distill.runtime", runtime)):
        same = sum(a == b for a, b in zip(found, ours, strict=True))
        print(f"{name}: the Keras label on {same} of {len(texts)} texts, {same / len(texts):.2%}")


if __name__ == "__main__":
    entry_point.run(main)
