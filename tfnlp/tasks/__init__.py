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
- `baseline(train, examples)`: the metrics of the best constant answer on the training examples.

`Translation` is trained by `tfnlp.training.train_translator`. It has `batches` in place of
`encode`, and `losses` and `scores` of a batch like an objective of `tfnlp.objectives`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
