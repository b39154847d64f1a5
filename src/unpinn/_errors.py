"""The one exception that a user of the package can cause."""


class UserError(ValueError):
    """A mistake in what the user supplied, told in one sentence that says what to do about it."""
