"""Pictures, the page for one fit, and the tables that say which readings not to trust."""

from unpinn.report._intervals import intervals_of as intervals_of
from unpinn.report._notebook import fit_html as fit_html
from unpinn.report._notebook import observations_html as observations_html
from unpinn.report._notebook import partition_html as partition_html
from unpinn.report._page import page_text as page_text
from unpinn.report._page import write_page as write_page
from unpinn.report._page import write_report as write_report
from unpinn.report._suspects import sensor_sentences as sensor_sentences
from unpinn.report._suspects import sensors_table as sensors_table
from unpinn.report._suspects import suspects_table as suspects_table
from unpinn.report._suspects import write_sensors as write_sensors
from unpinn.report._suspects import write_suspects as write_suspects
from unpinn.report._warnings import Notice as Notice
from unpinn.report._warnings import warnings_of as warnings_of
