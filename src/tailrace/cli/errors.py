"""What a command raises when it cannot do what was asked."""


class CommandError(Exception):
    """What was asked cannot be done; says why in one sentence."""
