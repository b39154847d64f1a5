"""Readings and problems from a user's files, and what became of every row."""

from unpinn.readings._problem_file import ProblemFile as ProblemFile
from unpinn.readings._problem_file import ProblemFileError as ProblemFileError
from unpinn.readings._problem_file import load_problem_file as load_problem_file
from unpinn.readings._read import ReadingWarning as ReadingWarning
from unpinn.readings._read import read_observations as read_observations
from unpinn.readings._read import read_with_report as read_with_report
from unpinn.readings._reading_report import Dropped as Dropped
from unpinn.readings._reading_report import ReadingReport as ReadingReport
from unpinn.readings._starter import starter_text as starter_text
from unpinn.readings._starter import write_starter as write_starter
from unpinn.readings._units import Conversion as Conversion
from unpinn.readings._units import Unit as Unit
from unpinn.readings._units import convert as convert
from unpinn.readings._units import parse_unit as parse_unit
from unpinn.readings._write import write_observations as write_observations
