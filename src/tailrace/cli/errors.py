"""CommandError: ends a command with one sentence for the user."""


class CommandError(Exception):
    """An error message and the exit status of the command: 2, or 1 if a broker refused the request."""

    def __init__(self, text: str, *, status: int = 2) -> None:
        super().__init__(text)
        self.status = status
