"""Decoder over the signatures of a .tflite generation file, with shared caches."""

import functools
import math
import pathlib

import ai_edge_litert
import numpy as np
from ai_edge_litert.compiled_model import CompiledModel, CpuOptions, Environment, Options
from ai_edge_litert.hardware_accelerator import HardwareAccelerator

from distill.runtime.litert_backend import litert_errors
from tfnlp.utils.native_notices import without_notices

# Prefixes of signature names; lengths or beams follow an underscore.
DECODE, PREFILL, ENCODE = "decode", "prefill", "encode"


class CachedDecoder:
    """Token-by-token decoder of one text, or of its beams.

    The caches are inputs and outputs of each signature. Each cache is one buffer for both, so
    LiteRT updates it in place, without copies. Beams are K tokens over one cache, as in
    `tfnlp.generation`: a mask tells which places belong to a text.

    Args:
        path: of the file.
        num_threads: of LiteRT.

    Raises:
        InputError: if LiteRT cannot run the file, as in all methods.
    """

    def __init__(self, path, num_threads=1):
        self.path = path
        options = Options(
            hardware_accelerators=HardwareAccelerator.CPU,
            cpu_options=CpuOptions(num_threads=num_threads),
        )
        with litert_errors(path), without_notices():
            self._model = CompiledModel.from_file(str(path), None, _environment(), options)
            self._inputs, self._outputs, self._logits = {}, {}, {}
            caches = {}
            for key, names in self._model.get_signature_list().items():
                self._inputs[key] = self._buffers(key, names["inputs"], "input", caches)
                self._outputs[key] = self._buffers(key, names["outputs"], "output", caches)
            self.places = self._model.get_input_tensor_details(DECODE)["keys_0"]["shape"][2]
        self.beams = max(self.lengths(DECODE), default=1)
        self.vocabulary_size = self._logits[DECODE][-1]

    def _buffers(self, key, names, side, caches):
        """Create {name: buffer} of a signature's inputs or outputs; caches are shared by all."""
        details = getattr(self._model, f"get_{side}_tensor_details")(key)
        create = getattr(self._model, f"create_{side}_buffer_by_name")
        buffers = {}
        for name in names:
            shape = tuple(int(n) for n in details[name]["shape"])
            if name == "logits":
                self._logits[key] = shape
            if not is_cache(name):
                buffers[name] = create(key, name)
                continue
            if name not in caches:
                caches[name] = create(key, name)
                # Uninitialised memory may hold NaN, which stays NaN times zero.
                caches[name].write(np.zeros(shape, details[name]["dtype"]))
            buffers[name] = caches[name]
        return buffers

    def lengths(self, name):
        """Return the numbers of the signatures with this prefix, ascending."""
        parts = (key.partition("_") for key in self._inputs)
        return sorted(int(number) for prefix, _, number in parts if prefix == name and number)

    def run(self, key, **inputs):
        """Run a signature, and return its logits, float32, or None; `inputs` are integers."""
        with litert_errors(self.path):
            for name, value in inputs.items():
                self._inputs[key][name].write(np.ascontiguousarray(value, "int32"))
            self._model.run_by_name(key, self._inputs[key], self._outputs[key])
            if key not in self._logits:
                return None
            shape = self._logits[key]
            return self._outputs[key]["logits"].read(math.prod(shape), np.float32).reshape(shape)

    def start(self, ids):
        """Read a prompt of (n,) ids, and return the next token's logits, (V,) float32."""
        ids = np.asarray(ids, "int32")
        for first, length, some in chunks(ids[:-1], self.lengths(PREFILL)):
            self.run(f"{PREFILL}_{length}", ids=some[None], place=[first])
        return self._begin(ids[-1], len(ids) - 1)

    def start_from(self, source, start_token_id):
        """Encode a source of (n,) ids, and return the logits of the first target token, (V,)."""
        length = next(n for n in self.lengths(ENCODE) if n >= len(source))
        ids = np.zeros((1, length), "int32")
        ids[0, : len(source)] = source
        mask = np.arange(length)[None] < len(source)
        self.run(f"{ENCODE}_{length}", ids=ids, mask=mask)
        return self._begin(start_token_id, 0)

    def _begin(self, token, place):
        logits = self.run(DECODE, ids=[[token]], place=[place])
        self._place = self._position = place + 1
        self._seen = np.zeros((self.beams, self.places), bool)
        self._seen[:, : self._place] = True
        return logits[0, 0]

    def step(self, token_ids, parents):
        """Decode one more token of each text.

        Args:
            token_ids: K ids, of one text or of as many as the file has beams.
            parents: K indices, of the text of the previous step that each continues.

        Returns:
            The next tokens' logits, (K, V) float32.
        """
        count = len(token_ids)
        place = np.array([self._place])
        if count == 1:
            logits = self.run(DECODE, ids=[token_ids], place=place)
        else:
            self._seen = self._seen[parents]
            self._seen[np.arange(count), self._place + np.arange(count)] = True
            more = {"position": [self._position], "seen": self._seen[None]}
            logits = self.run(f"{DECODE}_{count}", ids=[token_ids], place=place, **more)
        self._place += count
        self._position += 1
        return logits[0]


def chunks(ids, lengths):
    """Split a prompt into chunks for signatures of fixed lengths.

    The last of several chunks repeats ids of those before, so that no padding enters the cache. A
    prompt that fits into a single chunk is padded at its end.

    Returns:
        A list of (place of the first id, length, (length,) ids), with lengths among `lengths`,
        which ascend.
    """
    prompt_chunks, position = [], 0
    while position < len(ids):
        left = len(ids) - position
        length = next((n for n in lengths if n >= left), lengths[-1])
        first = max(min(position, len(ids) - length), 0)
        chunk_ids = np.zeros(length, "int32")
        chunk_ids[: min(length, len(ids) - first)] = ids[first : first + length]
        prompt_chunks.append((first, length, chunk_ids))
        position = first + length
    return prompt_chunks


def is_cache(name):
    """Return whether a tensor of this name is kept between calls."""
    return name.startswith(("keys_", "values_", "source_"))


@functools.cache
def _environment():
    """Return LiteRT's environment, one for all files, kept until the process ends."""
    folder = pathlib.Path(ai_edge_litert.__file__).parent
    return Environment.create(runtime_path=str(folder))
