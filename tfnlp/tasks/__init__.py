"""What is fine-tuned for: each task encodes its examples, and has a loss and a score.

A task has

- `head`, `num_classes`, `label_names`: of the model that does it;
- `settings`: a dict of how it reads texts, which the model's folder is to say; or None;
- `outputs`: the names of the model's outputs that it reads;
- `monitor`: the metric that the best epoch has the most of;
- `encode(tokenizer, examples, max_length)`: encodings, and labels or None;
- `loss(labels, outputs, sample_weight=None)`: of one batch, a mean as in `tfnlp.losses`;
- `score(examples, encodings, outputs)`: a dict of metrics, from each encoding's outputs.
"""

from tfnlp.tasks.answering import Answering, read_questions
from tfnlp.tasks.choosing import Choosing, read_choices
from tfnlp.tasks.classification import Classification
from tfnlp.tasks.regression import Regression, read_scored_pairs
from tfnlp.tasks.tagging import Tagging, read_tagged

__all__ = [
    "Answering",
    "Choosing",
    "Classification",
    "Regression",
    "Tagging",
    "read_choices",
    "read_questions",
    "read_scored_pairs",
    "read_tagged",
]
