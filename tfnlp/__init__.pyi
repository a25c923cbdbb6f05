"""tfnlp: exact, fast Keras 3 layers and models for NLP transformers, up to export for phones."""

from . import checkpoints as checkpoints
from . import configs as configs
from . import corpora as corpora
from . import functional as functional
from . import generation as generation
from . import inspection as inspection
from . import layers as layers
from . import models as models
from . import objectives as objectives
from . import pipelines as pipelines
from . import plots as plots
from . import quantization as quantization
from . import tasks as tasks
from . import text as text
from . import training as training
from . import utils as utils
