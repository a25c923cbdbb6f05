"""Training: strategies, schedules, run folders, and a `fit` that resumes exactly."""

from tfnlp.pipelines.keras_runners import load_runner
from tfnlp.training.finetuning import FineTuner, encode_batches, finetune
from tfnlp.training.inference import predict
from tfnlp.training.optimizer import adamw
from tfnlp.training.precision import set_precision
from tfnlp.training.pretraining import pretrain, start_models
from tfnlp.training.resumable_fit import compile_classifier, fit
from tfnlp.training.run_folder import RunFolder
from tfnlp.training.schedules import WarmupLinearDecay
from tfnlp.training.strategy import make_strategy
from tfnlp.training.training_config import TrainingConfig
from tfnlp.training.translator_training import train_translator
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
