"""CommandError: ends a command with one sentence for the user."""


class CommandError(Exception):
    """An error message and the exit status of the command: 2, or 1 if a broker refused the request.

    `code` is the name of the broker's error code, if there is one.
    """

    def __init__(self, text: str, *, status: int = 2, code: str | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
