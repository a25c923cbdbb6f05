"""Loading and saving of Hugging Face and keras-hub checkpoint folders."""

from . import keras_hub_preset as keras_hub_preset
from .averaging import average_folders as average_folders
from .checkpoint_config import read_config as read_config
from .checkpoint_config import read_head as read_head
from .checkpoint_config import read_labels as read_labels
from .checkpoint_config import read_task_settings as read_task_settings
from .family import family_of as family_of
from .model_loading import load_model as load_model
from .model_loading import read_pooler as read_pooler
from .model_saving import check_saves as check_saves
from .model_saving import save_model as save_model
