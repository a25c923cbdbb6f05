"""Search of a student within a budget of latency and size."""

from .cost_table import CostTable as CostTable
from .cost_table import read_table as read_table
from .search_page import page as page
from .search_page import reason as reason
from .student_finder import COSTS as COSTS
from .student_finder import StudentFinder as StudentFinder
from .student_search import Budget as Budget
from .student_search import Candidates as Candidates
from .student_search import beyond as beyond
from .student_search import search as search
from .sub_student import SearchSpace as SearchSpace
from .sub_student import SubStudent as SubStudent
from .supernet import StudentScorer as StudentScorer
from .supernet import Supernet as Supernet
from .supernet import SupernetDistillation as SupernetDistillation
from .supernet import extract as extract
from .supernet import order_by_importance as order_by_importance
