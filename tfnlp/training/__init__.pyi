"""Training: strategies, schedules, run folders, and a `fit` that resumes exactly."""

from .adversarial import AdversarialRegularizer as AdversarialRegularizer
from .experiment import Experiment as Experiment
from .experiment import Splits as Splits
from .finetuning import FineTuning as FineTuning
from .finetuning import encode_batches as encode_batches
from .fingerprints import content_fingerprint as content_fingerprint
from .fingerprints import model_fingerprint as model_fingerprint
from .inference import predict as predict
from .optimizer import compile_model as compile_model
from .optimizer import make_optimizer as make_optimizer
from .optimizer import optimizer_of as optimizer_of
from .precision import check_precision as check_precision
from .precision import set_precision as set_precision
from .pretraining import Pretraining as Pretraining
from .pretraining import start_models as start_models
from .resumable_fit import fit as fit
from .run_folder import TOKENIZER as TOKENIZER
from .run_folder import RunFolder as RunFolder
from .schedules import WarmupLinearDecay as WarmupLinearDecay
from .schedules import vaswani_peak as vaswani_peak
from .strategy import make_strategy as make_strategy
from .trainer import FineTuner as FineTuner
from .trainer import Trainer as Trainer
from .training_config import TrainingConfig as TrainingConfig
from .translator_training import TranslatorTraining as TranslatorTraining
from .workers import is_chief as is_chief
