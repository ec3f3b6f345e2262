"""PEM as written in properties files."""

from __future__ import annotations

import re


def whole_pem(text: str | None) -> str | None:
    """Return PEM with its line breaks restored. Properties files often have \\n or spaces instead."""
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
