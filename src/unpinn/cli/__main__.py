"""`python -m unpinn.cli` is `unpinn`."""

from unpinn.cli._app import main

main()
