"""Export of models to .tflite files with metadata."""

from .fidelity import compare as compare
from .fidelity import describe as describe
from .fidelity import file_card as file_card
from .generation_export import export_generator as export_generator
from .generation_export import export_translator as export_translator
from .golden_outputs import write_golden as write_golden
from .litertlm import export_litertlm as export_litertlm
from .options import Credits as Credits
from .options import DecoderExport as DecoderExport
from .options import Export as Export
from .tflite import export_tflite as export_tflite
from .web_folder import check_web as check_web
from .web_folder import web_options as web_options
from .web_folder import write_web_folder as write_web_folder
