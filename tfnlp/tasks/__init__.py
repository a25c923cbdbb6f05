"""Fine-tuning tasks.

A task is a subclass of `Task` in a file of its own, beside the function that reads its examples.
It defines its `kind` (`tfnlp.tasks.kinds`), `encode`, `decode` and `score_predictions`; a loss
other than cross-entropy; and what else of `Task` differs.

`Translation` is trained by `tfnlp.training.TranslatorTraining`. It is written like an objective of
`tfnlp.objectives`: `batches` of texts, and `losses` and `scores` of a batch."""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
