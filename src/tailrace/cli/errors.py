"""CommandError: what a command cannot do, in one sentence for the user."""


class CommandError(Exception):
    """The question cannot be answered; `status` is what the command ends with: 2, or 1 where a broker said no."""

    def __init__(self, text: str, *, status: int = 2) -> None:
        super().__init__(text)
        self.status = status
