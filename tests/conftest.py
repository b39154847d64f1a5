"""Fixtures that several folders of tests share."""

from __future__ import annotations

import pytest


@pytest.fixture
def run_cli():
    """Run `unpinn ARGUMENTS...` in this process and return its exit code, output and exception."""
    from typer.testing import CliRunner, Result

    from unpinn.cli import app

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run
