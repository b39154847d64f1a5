"""Taking results away: fields, unknown numbers, and the model as a function or a program."""

from unpinn.export._function import as_function as as_function
from unpinn.export._grids import fields_on as fields_on
from unpinn.export._grids import full_grid as full_grid
from unpinn.export._netcdf import to_dataset as to_dataset
from unpinn.export._netcdf import write_netcdf as write_netcdf
from unpinn.export._program import Program as Program
from unpinn.export._program import load_program as load_program
from unpinn.export._program import write_program as write_program
from unpinn.export._unknowns import unknowns_record as unknowns_record
from unpinn.export._unknowns import write_unknowns as write_unknowns
from unpinn.export._vtk import image_data as image_data
from unpinn.export._vtk import write_vtk as write_vtk
