"""Hyperparameters of a training."""

import dataclasses
import importlib.util
import math

from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.settings import Settings, setting

SCHEDULES = ("linear", "cosine", "polynomial", "wsd", "inverse_sqrt", "constant")
# Schedules that fall until the last step.
ENDING = SCHEDULES[:4]
OPTIMIZERS = ("adamw", "lamb", "muon")
# What figures are logged to; each is the name of its package too.
TRACKERS = ("tensorboard", "mlflow", "wandb")


@dataclasses.dataclass(frozen=True)
class TrainingConfig(Settings):
    """Hyperparameters of a training, each described by the help of its field.

    Raises:
        InputError: if a value is out of its range, or values contradict each other.
    """

    epochs: int = setting(
        3, "Passes over the training data; more than a finished run had continue it.", low=1
    )
    max_steps: int | None = setting(
        None, "Steps after which the training and its schedule end, in place of epochs.", low=1
    )
    batch_size: int = setting(32, "Examples in a batch, over all devices.", low=1)
    learning_rate: float = setting(5e-5, "Peak learning rate.", low=0)
    warmup_share: float = setting(
        0.1, "Share of the steps in which the rate rises.", low=0, high=1
    )
    warmup_steps: int | None = setting(
        None,
        "Steps in which the rate rises; a share of all, a tenth, if not given.",
        low=0,
    )
    weight_decay: float = setting(0.01, "Decay of weights; biases and norms do not decay.", low=0)
    clip_norm: float = setting(
        1.0, "Largest norm of all gradients together; 0: no clipping.", low=0, rare=True
    )
    patience: int = setting(
        0, "Epochs without a better dev score after which training stops; 0: never.", low=0
    )
    checkpoint_steps: int = setting(
        500,
        "Steps between saved states; the state is also saved after each epoch.",
        low=1,
        rare=True,
    )
    keep_every: int | None = setting(
        None, "Steps between models kept in checkpoints/; none are if not given.", low=1, rare=True
    )
    keep_best: int = setting(
        0, "Number of best epochs by dev whose models are kept in checkpoints/.", low=0, rare=True
    )
    log_steps: int = setting(
        0, "Steps between lines of loss, rate and speed in metrics.jsonl; 0: epochs alone.", low=0
    )
    log_to: tuple[str, ...] = setting(
        ("tensorboard",),
        "Where figures are logged beside metrics.jsonl: any of tensorboard, mlflow and wandb.",
    )
    seed: int = setting(0, "Seed of weights, dropout and data order.", low=0)
    schedule: str = setting(
        "linear", "Fall of the learning rate after its peak.", choices=SCHEDULES
    )
    end_rate_share: float = setting(
        0.0, "Share of the peak rate that a schedule ends with.", low=0, high=1, rare=True
    )
    decay_share: float = setting(
        0.1,
        "Share of the steps, the last, in which the rate of wsd falls.",
        low=0,
        high=1,
        rare=True,
    )
    decay_power: float = setting(2.0, "Exponent of a polynomial schedule.", above=0, rare=True)
    optimizer: str = setting(
        "adamw",
        "AdamW; LAMB for batches of thousands; or Muon for matrices of blocks, at some five times "
        "AdamW's rate in a short training, with AdamW for the rest.",
        choices=OPTIMIZERS,
    )
    beta_1: float = setting(
        0.9, "Decay of the optimizer's mean of gradients.", low=0, high=1, below=1, rare=True
    )
    beta_2: float = setting(
        0.999,
        "Decay of the optimizer's mean of squared gradients.",
        low=0,
        high=1,
        below=1,
        rare=True,
    )
    epsilon: float | None = setting(
        None,
        "Number added to the root of the mean of squared gradients; if not given 1e-8, and 1e-6 "
        "for LAMB.",
        low=0,
        rare=True,
    )
    ema_decay: float = setting(
        0.0,
        "Decay, such as 0.999, of a moving average of the weights, which is evaluated and saved "
        "in their place; 0: no average.",
        low=0,
        high=1,
        below=1,
    )
    freeze_layers: int = setting(0, "Lowest blocks whose weights stay as they are.", low=0)
    freeze_embeddings: bool = setting(False, "Whether embeddings stay as they are.", rare=True)
    lora_rank: int = setting(
        0,
        "Rank of the LoRA adapters that train, with the head, in place of the encoder; 0: all of "
        "it trains.",
        low=0,
    )
    lora_layers: tuple[str, ...] = setting(
        ("query", "value"),
        "Ends of the paths of the kernels that LoRA adapts, such as query, attention/output or "
        "intermediate; all: all of the blocks.",
        rare=True,
    )
    layer_decay: float = setting(
        1.0,
        "Learning rate of each block, as a share of that of the block above; ELECTRA's is 0.8.",
        low=0,
        high=1,
        above=0,
        rare=True,
    )
    on_nan: str = setting(
        "stop",
        "Whether a batch whose loss is not finite, or explodes, stops the training or is skipped. "
        "In either case it changes no weight.",
        choices=("stop", "skip"),
    )
    accumulation_steps: int = setting(
        1,
        "Parts in which each batch is read, for less memory; the step is that of the whole batch.",
        low=1,
    )
    gradient_checkpointing: bool = setting(
        False,
        "Compute each block a second time for its gradients: less memory, a third more time.",
    )
    fixed_length: bool = setting(
        False,
        "Pad all training texts to the greatest length, not to that of their batch.",
        rare=True,
    )
    xla: bool = setting(
        False,
        "Compile the training steps by XLA, which is slow on a CPU; needs fixed_length.",
        rare=True,
    )

    def __post_init__(self):
        super().__post_init__()
        for name in self.log_to:
            if name not in TRACKERS:
                raise unknown_name("log_to", name, TRACKERS)
            spec = importlib.util.find_spec(name)
            if spec is None or spec.origin is None:  # or the folder wandb/ of earlier runs
                raise InputError(f"log_to={name} needs {name}: pip install {name}.")
        if self.end_rate_share and self.schedule not in ENDING:
            raise InputError(
                f"end_rate_share={self.end_rate_share} has no effect on schedule={self.schedule}, "
                f"which does not end; give one of {', '.join(ENDING)}, or leave it out."
            )
        if self.max_steps and (self.warmup_steps or 0) > self.max_steps:
            raise InputError(
                f"warmup_steps={self.warmup_steps} is more than max_steps={self.max_steps}, so "
                "that the rate would never reach its peak; give fewer, or more of these."
            )
        if self.batch_size % self.accumulation_steps:
            raise InputError(
                f"accumulation_steps={self.accumulation_steps} must divide "
                f"batch_size={self.batch_size}, the size of all parts together."
            )
        if self.xla and not self.fixed_length:
            raise InputError(
                "xla=True compiles the steps anew for each length of texts; give `fixed_length` "
                "too, which pads all to one."
            )

    def total_steps(self, steps_per_epoch):
        """Return the number of steps of the whole training."""
        return self.max_steps or self.epochs * steps_per_epoch

    def total_epochs(self, steps_per_epoch):
        """Return the number of epochs, the last of which `max_steps` may cut short."""
        return math.ceil(self.total_steps(steps_per_epoch) / steps_per_epoch)


@dataclasses.dataclass(frozen=True)
class PretrainingConfig(TrainingConfig):
    """Hyperparameters of a pretraining, whose epoch need not be a pass over the corpora."""

    steps_per_epoch: int | None = setting(
        None,
        "Steps of an epoch, which then need not end with a pass over the corpus; those of a pass "
        "if not given. The training has `epochs` times as many.",
        low=1,
    )
    loader_processes: int = setting(
        0,
        "Further processes that make the batches, the same ones, for a device that is faster than "
        "one core makes them.",
        low=0,
    )


@dataclasses.dataclass(frozen=True)
class TranslatorConfig(TrainingConfig):
    """Hyperparameters of a translator's training, whose batches are counted in tokens."""

    max_tokens: int = setting(
        4096, "Most tokens of a batch: sources and targets with padding.", low=2
    )
    average_epochs: int = setting(
        0, "Number of last epochs to average the weights of; 0: no average.", low=0
    )
