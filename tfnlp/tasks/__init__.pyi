"""Fine-tuning tasks: each encodes its examples and defines a loss and scores.

A task has

- `head`, `num_classes`, `label_names`: of its model;
- `settings`: a dict of how it reads texts, to be stored in the model's folder; or None;
- `outputs`: the names of the model outputs that it reads;
- `monitor`: the metric that selects the best epoch, the larger the better;
- `encode(tokenizer, examples, max_length)`: encodings, and labels or None;
- `loss(labels, outputs, sample_weight=None)`: of one batch, a mean as in `tfnlp.weighted_losses`;
- `score(examples, encodings, outputs)`: a dict of metrics, from each encoding's outputs.

and may have

- `start(model, examples)`: initialises a new model from the training examples;
- `answers(examples, encodings, outputs)`: the correct and the predicted answers, two lists;
- `baseline(examples)`: the metrics of the best constant answer.

`Translation` is trained by `tfnlp.training.TranslatorTraining`. It has `batches` in place of
`encode`, and `losses` and `scores` of a batch like an objective of `tfnlp.objectives`."""

from .classification import Classification as Classification
from .features import check_features_file as check_features_file
from .features import extract_features as extract_features
from .features import write_features as write_features
from .multiple_choice import MultipleChoice as MultipleChoice
from .multiple_choice import read_choices as read_choices
from .parallel_texts import ParallelTexts as ParallelTexts
from .parallel_texts import read_parallel_texts as read_parallel_texts
from .question_answering import QuestionAnswering as QuestionAnswering
from .question_answering import read_questions as read_questions
from .reference_scores import make_bleu as make_bleu
from .reference_scores import scoring_libraries as scoring_libraries
from .reference_scores import text_scores as text_scores
from .regression import Regression as Regression
from .regression import read_scored_pairs as read_scored_pairs
from .scheduled_sampling import ScheduledSampling as ScheduledSampling
from .tagging import Tagging as Tagging
from .tagging import read_tagged as read_tagged
from .tagging import tag_names as tag_names
from .task import Task as Task
from .translation import Translation as Translation
