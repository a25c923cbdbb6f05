"""A folder of `export_tflite --web` in headless Chromium: ids, bytes and milliseconds.

    python -m recipes.export_tflite --model_dir=all-MiniLM-L6-v2 --output_dir=runs/web --web
    python -m benchmarks.web_page --web_dir=runs/web/web

compares the ids of hostile strings with Python's, and times a text. Beside MediaPipe on the same
file, an embedder's, and transformers.js on an .onnx in 8 bits of the same model, at
MODEL_DIR/onnx/model_quantized.onnx:

    npm install --prefix=runs/peers --ignore-scripts @huggingface/transformers \\
        @mediapipe/tasks-text
    python -m benchmarks.web_page --web_dir=runs/web/web --peers_dir=runs/peers \\
        --model_dir=MODEL_DIR

--write_onnx writes that file, by PyTorch and ONNX Runtime (`.[benchmarks]`).
"""

import functools
import http.server
import json
import pathlib
import shutil
import statistics
import tempfile
import threading

from absl import flags

from benchmarks.hostile_texts import hostile_strings
from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("web_dir", None, "Folder that export_tflite --web wrote.")
flags.DEFINE_string(
    "peers_dir", None, "Folder with transformers.js and MediaPipe in node_modules."
)
flags.DEFINE_string("model_dir", None, "Hugging Face's folder of the model, for transformers.js.")
flags.DEFINE_bool("write_onnx", False, "Write MODEL_DIR/onnx/model_quantized.onnx.")
flags.DEFINE_integer("strings", 10_000, "Hostile strings to compare ids on; 0 for none.", 0)
flags.DEFINE_integer("tokens", 32, "Tokens of the text that is timed, special ones included.", 3)
flags.DEFINE_integer("repeats", 50, "Runs to take the median of.", 1)
flags.mark_flags_as_required(["web_dir"])

EMPTY = "<!DOCTYPE html><html lang='en'><title>Benchmark</title>"
IDS = """(async () => {
  const { encode, readPieces } = await import('./tfnlp.js');
  const part = async (name) => (await fetch(name)).json();
  const { rules, max_length } = await part('settings.json');
  const pieces = readPieces(await part('tokenizer.json'), rules);
  return (await part('texts.json')).map((text) => encode(pieces, max_length, text).row.ids);
})()"""
TIMED = """(async () => {
  const start = performance.now();
  const run = await (%s)();
  const text = 'film '.repeat(%d), times = [];
  await run(text);
  const first = performance.now() - start;
  for (let i = 0; i < 10 + %d; i += 1) {
    const begun = performance.now();
    await run(text);
    if (i >= 10) times.push(performance.now() - begun);
  }
  return { first, times };
})()"""
OURS = """async () => {
  const { loadModel } = await import('./tfnlp.js');
  const model = await loadModel();
  return (text) => model.run(text);
}"""
TRANSFORMERS = """async () => {
  const { env, pipeline } = await import('./transformers.min.js');
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.localModelPath = '/';
  env.backends.onnx.wasm.wasmPaths = '/transformers/';
  const embed = await pipeline('feature-extraction', 'model', { dtype: 'q8', device: 'wasm' });
  return async (text) => (await embed(text, { pooling: 'mean', normalize: true })).data;
}"""
MEDIAPIPE = """async () => {
  const { FilesetResolver, TextEmbedder } = await import('./text_bundle.mjs');
  const files = await FilesetResolver.forTextTasks('.');
  const options = { baseOptions: { modelAssetPath: 'model.tflite' } };
  const embedder = await TextEmbedder.createFromOptions(files, options);
  return async (text) => embedder.embed(text);
}"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    from tests.browser import browser

    # Chromium may still write to its profile when it ends.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        place = pathlib.Path(place)
        shutil.copytree(FLAGS.web_dir, place / "ours")
        (place / "ours" / "empty.html").write_text(EMPTY)
        pages = {"ours": OURS}
        if FLAGS.peers_dir:
            if FLAGS.write_onnx:
                write_onnx(pathlib.Path(FLAGS.model_dir))
            copy_peers(place)
            pages |= {"transformers": TRANSFORMERS, "mediapipe": MEDIAPIPE}
        handler = functools.partial(_Quiet, directory=place)
        with (
            http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
            browser(place / "profile") as page,
        ):
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_port}"
            if FLAGS.strings:
                compare_ids(page, address, place)
            for name, load in pages.items():
                time_page(page, f"{address}/{name}", name, load)
            server.shutdown()


def compare_ids(page, address, place):
    """Print on how many hostile strings the page has the ids of Python's tokenizer."""
    from distill import runtime

    texts = hostile_strings(FLAGS.strings, 0)
    # Two halves of a pair are one code point in JavaScript.
    texts = [t.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for t in texts]
    (place / "ours" / "texts.json").write_text(json.dumps(texts))
    rows = page.open(f"{address}/ours/empty.html").js(IDS)
    folder = pathlib.Path(FLAGS.web_dir)
    tokenizer = runtime.load_runner(folder / "model.tflite").tokenizer
    longest = json.loads((folder / "settings.json").read_text("utf-8"))["max_length"]
    expected = tokenizer.encode(texts, max_length=longest)
    pairs = zip(rows, expected, texts, strict=True)
    different = [text for row, e, text in pairs if row != [*e.token_ids]]
    print(f"ids: equal on {len(texts) - len(different)} of {len(texts)} strings")
    for text in different[:5]:
        print("  other ids:", ascii(text[:80]))


def time_page(page, address, name, load):
    """Print the bytes that a page loads, and the milliseconds of a text."""
    page.open(f"{address}/empty.html")
    result = page.js(TIMED % (load, FLAGS.tokens - 2, FLAGS.repeats))
    page.js("1")  # collects the events until here
    received = [e["params"] for e in page.events if e["method"] == "Network.loadingFinished"]
    size = sum(event["encodedDataLength"] for event in received)
    times = result["times"]
    print(
        f"{name}: {size / 1e6:.1f} MB, first answer after {result['first']:.0f} ms; then "
        f"{statistics.median(times):.2f} ms a text (least {min(times):.2f})"
    )


def copy_peers(place):
    """Copy transformers.js with ONNX Runtime and the model, and MediaPipe, beside the page."""
    modules = pathlib.Path(FLAGS.peers_dir) / "node_modules"
    shutil.copytree(modules / "onnxruntime-web/dist", place / "transformers")
    script = modules / "@huggingface/transformers/dist/transformers.min.js"
    shutil.copy(script, place / "transformers")
    shutil.copytree(modules / "@mediapipe/tasks-text/wasm", place / "mediapipe")
    shutil.copy(modules / "@mediapipe/tasks-text/text_bundle.mjs", place / "mediapipe")
    shutil.copy(pathlib.Path(FLAGS.web_dir) / "model.tflite", place / "mediapipe")
    for name in ("transformers", "mediapipe"):
        (place / name / "empty.html").write_text(EMPTY)
    (place / "model").mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pathlib.Path(FLAGS.model_dir) / name, place / "model")
    shutil.copytree(pathlib.Path(FLAGS.model_dir) / "onnx", place / "model" / "onnx")


def write_onnx(folder):
    """Write the encoder of a folder as an .onnx in 8 bits, as transformers.js reads it."""
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import AutoModel

    class States(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = AutoModel.from_pretrained(folder)

        def forward(self, ids, mask, segment_ids):
            return self.model(ids, mask, segment_ids).last_hidden_state

    names = ["input_ids", "attention_mask", "token_type_ids"]
    (folder / "onnx").mkdir(exist_ok=True)
    torch.onnx.export(
        States().eval(),
        (torch.ones((1, 8), dtype=torch.long),) * 3,
        str(folder / "onnx" / "model.onnx"),
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in names},
        dynamo=False,
    )
    quantized = folder / "onnx" / "model_quantized.onnx"
    quantize_dynamic(folder / "onnx" / "model.onnx", quantized, weight_type=QuantType.QInt8)
    (folder / "onnx" / "model.onnx").unlink()


if __name__ == "__main__":
    entry_point.run(main)
