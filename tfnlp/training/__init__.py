"""Training: strategies, schedules, run folders, and a `fit` that resumes exactly."""

from tfnlp.training.config import TrainingConfig
from tfnlp.training.finetune import FineTuner, encode_batches, finetune
from tfnlp.training.fit import compile_classifier, fit
from tfnlp.training.optimizer import adamw
from tfnlp.training.precision import set_precision
from tfnlp.training.predict import predict
from tfnlp.training.pretrain import pretrain, start_models
from tfnlp.training.run_folder import RunFolder
from tfnlp.training.runners import load_runner
from tfnlp.training.schedules import WarmupLinearDecay
from tfnlp.training.strategy import make_strategy
from tfnlp.training.train_translator import train_translator
from tfnlp.training.workers import is_chief

__all__ = [
    "FineTuner",
    "RunFolder",
    "TrainingConfig",
    "WarmupLinearDecay",
    "adamw",
    "compile_classifier",
    "encode_batches",
    "finetune",
    "fit",
    "is_chief",
    "load_runner",
    "make_strategy",
    "predict",
    "pretrain",
    "set_precision",
    "start_models",
    "train_translator",
]
