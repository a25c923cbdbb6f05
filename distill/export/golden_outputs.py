"""Golden outputs of a file as JSON, for the tests of an app's code."""

import copy
import dataclasses

import numpy as np

from tfnlp.pipelines.predictions import predict_inputs
from tfnlp.utils.files import write_json


def write_golden(path, pipeline, inputs):
    """Write LiteRT's outputs for each input, as JSON.

    The file holds `kind`, `max_length`, `labels`, `settings` (of the task) and `inputs`, a list
    with for each of them

    - `text` and, for pairs, questions and prompts, `second`;
    - `rows`, one for each run of the file: `ids`, `segment_ids` and `outputs`, {name: numbers}. A
      text that is read in windows has several, and a chooser's has one for each ending;
    - `answer`: the result of `distill.runtime`: a dict of a label, a tag for each word, an answer
      or a choice; a number; or a vector.

    Args:
        path: of the JSON file.
        pipeline: of the file, from `distill.runtime`.
        inputs: `tfnlp.pipelines.Inputs`.
    """
    content = {
        "kind": pipeline.kind.name,
        "max_length": pipeline.max_length,
        "labels": pipeline.labels,
        "settings": pipeline.settings,
        "inputs": [],
    }
    recorded = copy.copy(pipeline)
    for place in range(len(inputs.texts)):
        one, recorded.backend = inputs.take([place]), _Recorder(pipeline.backend)
        (answer,) = predict_inputs(recorded, one)
        texts = {"text": one.texts[0]}
        if one.second_texts is not None:
            texts["second"] = one.second_texts[0]
        is_number = not dataclasses.is_dataclass(answer)  # or a vector
        answer = np.asarray(answer).tolist() if is_number else dataclasses.asdict(answer)
        content["inputs"].append(texts | {"rows": recorded.backend.rows, "answer": answer})
    write_json(path, content)


class _Recorder:
    """Backend that keeps its inputs and outputs as JSON types, in `rows`."""

    def __init__(self, backend):
        self.backend = backend
        self.rows = []

    def run(self, encodings):
        results = self.backend.run(encodings)
        for encoding, outputs in zip(encodings, results, strict=True):
            numbers = {name: np.asarray(value).tolist() for name, value in outputs.items()}
            ids = [int(i) for i in encoding.token_ids]
            segment_ids = [int(i) for i in encoding.segment_ids]
            self.rows.append({"ids": ids, "segment_ids": segment_ids, "outputs": numbers})
        return results
