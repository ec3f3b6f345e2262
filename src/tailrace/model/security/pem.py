"""PEM as properties files have it."""

from __future__ import annotations

import re


def whole_pem(text: str | None) -> str | None:
    """PEM with its line breaks: in a properties file they are often written as \\n, or left out as blanks."""
    if text is None:
        return None
    text = text.replace("\\n", "\n")
    if "\n" in text.strip():
        return text
    return re.sub(
        r"(-----BEGIN [^-]+-----)(.*?)(-----END [^-]+-----)",
        lambda found: f"{found[1]}\n" + "\n".join(found[2].split()) + f"\n{found[3]}\n",
        text,
    )
