"""What is fine-tuned for: each task encodes its examples, and has a loss and a score.

A task has

- `head`, `num_classes`, `label_names`: of the model that does it;
- `settings`: a dict of how it reads texts, which the model's folder is to say; or None;
- `outputs`: the names of the model's outputs that it reads;
- `monitor`: the metric that the best epoch has the most of;
- `encode(tokenizer, examples, max_length)`: encodings, and labels or None;
- `loss(labels, outputs, sample_weight=None)`: of one batch, a mean as in `tfnlp.losses`;
- `score(examples, encodings, outputs)`: a dict of metrics, from each encoding's outputs.

and may have

- `start(model, examples)`: sets what a fresh model begins with, from the training examples;
- `answers(examples, encodings, outputs)`: what is right, and what the model says, two lists;
- `baseline(train, examples)`: the metrics of the one answer that fits the training examples best.

`Translation` is trained by `tfnlp.training.train_translator`, and has `batches` of its own in
place of `encode`, and `losses` and `scores` of a batch as an objective of `tfnlp.objectives` has.
"""

from tfnlp.tasks.answering import Answering, read_questions
from tfnlp.tasks.choosing import Choosing, read_choices
from tfnlp.tasks.classification import Classification
from tfnlp.tasks.parallel_texts import ParallelTexts, read_parallel_texts
from tfnlp.tasks.regression import Regression, read_scored_pairs
from tfnlp.tasks.tagging import Tagging, read_tagged
from tfnlp.tasks.translation import Translation

__all__ = [
    "Answering",
    "Choosing",
    "Classification",
    "ParallelTexts",
    "Regression",
    "Tagging",
    "Translation",
    "read_choices",
    "read_parallel_texts",
    "read_questions",
    "read_scored_pairs",
    "read_tagged",
]
