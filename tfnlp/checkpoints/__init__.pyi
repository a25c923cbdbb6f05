"""Loading and saving of Hugging Face and keras-hub checkpoint folders."""

from .folder import check_saves as check_saves
from .folder import family_of as family_of
from .folder import load_model as load_model
from .folder import read_config as read_config
from .folder import read_head as read_head
from .folder import read_labels as read_labels
from .folder import read_pooler as read_pooler
from .folder import read_task_settings as read_task_settings
from .folder import save_model as save_model
