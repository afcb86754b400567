"""What the lab raises when it cannot go on."""


class LabError(Exception):
    """A failure that a person can act on: the text says what is wrong, where, and what to do."""
