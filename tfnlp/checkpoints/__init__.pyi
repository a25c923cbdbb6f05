"""Loading and saving of Hugging Face and keras-hub checkpoint folders."""

from . import keras_hub_conversion as keras_hub_conversion
from . import keras_hub_map as keras_hub_map
from .averaging import average_folders as average_folders
from .checkpoint_config import read_config as read_config
from .checkpoint_config import read_head as read_head
from .checkpoint_config import read_labels as read_labels
from .checkpoint_config import read_task_settings as read_task_settings
from .checkpoint_config import unnamed_labels as unnamed_labels
from .checkpoint_map import map_of as map_of
from .keras_hub_conversion import from_keras_hub as from_keras_hub
from .keras_hub_conversion import to_keras_hub as to_keras_hub
from .keras_hub_conversion import with_encoder_blocks as with_encoder_blocks
from .lora_adapter import merge_adapter as merge_adapter
from .model_loading import load_model as load_model
from .model_loading import read_pooler as read_pooler
from .model_saving import check_saves as check_saves
from .model_saving import save_model as save_model
from .sentence_modules import read_vector_head as read_vector_head
