"""The command line: a thin shell that parses, calls the library and prints.

Every file here is a command or a group of commands, found by its `add_to(app)`; to add one, add a
file. None of them imports anything slow before its command is called.
"""

from unpinn.cli._app import app as app
from unpinn.cli._app import main as main
