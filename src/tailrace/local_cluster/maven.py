"""MavenRepository: files of a Maven repository, fetched once, kept in the user's cache, and what they should be.

    repository = MavenRepository.chosen()
    paths = repository.fetch(artifacts, on_bytes=progress.advance)

An artifact is named with its size and SHA-256, so that it does not matter where it comes from: Maven Central, or the
repository that TAILRACE_MAVEN_REPOSITORY names (http, https or file), with a name and password in the address if it
needs them. A file is in the cache whole or not at all, and is checked each time it is used.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Final, NamedTuple

from tailrace.client.security.redirects import open_url

MAVEN_CENTRAL: Final = "https://repo.maven.apache.org/maven2"
VARIABLE: Final = "TAILRACE_MAVEN_REPOSITORY"
_AT_ONCE: Final = 4
_TRIES: Final = 3
_TIMEOUT_S: Final = 60.0
_PIECE: Final = 64 * 1024
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})


class Artifact(NamedTuple):
    path: str  # in the repository's layout
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class CannotFetch(Exception):
    """An artifact cannot be had; says which, from where and why."""


class MavenRepository:
    def __init__(self, url: str, cache: Path) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https", "file"):
            raise CannotFetch(f"{VARIABLE} is no address of a repository: it begins with http, https or file")
        self._headers = {"User-Agent": "tailrace"}
        place = parts.netloc.rpartition("@")[2]
        if parts.username is not None:
            secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(secret.encode()).decode()}"
        self.url = urllib.parse.urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))  # without the secret
        self._cache = cache

    @classmethod
    def chosen(cls) -> MavenRepository:
        """The repository that the environment names, or Maven Central; kept in the user's cache directory."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tailrace", "maven")
        return cls(os.environ.get(VARIABLE) or MAVEN_CENTRAL, cache)

    def missing(self, artifacts: Sequence[Artifact]) -> list[Artifact]:
        """Those that are not in the cache as they should be."""
        return [one for one in artifacts if not self._is_kept(one)]

    def fetch(self, artifacts: Sequence[Artifact], on_bytes: Callable[[int], None] = lambda size: None) -> list[Path]:
        """The files, fetched where they are not kept; CannotFetch for the first that cannot be had."""
        with ThreadPoolExecutor(_AT_ONCE) as several:
            for _ in several.map(lambda one: self._fetch(one, on_bytes), self.missing(artifacts)):
                pass
        return [self._kept(one) for one in artifacts]

    def _kept(self, artifact: Artifact) -> Path:
        return self._cache / artifact.path

    def _is_kept(self, artifact: Artifact) -> bool:
        path = self._kept(artifact)
        if not path.exists() or path.stat().st_size != artifact.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256

    def _fetch(self, artifact: Artifact, on_bytes: Callable[[int], None]) -> None:
        target = self._kept(artifact)
        target.parent.mkdir(parents=True, exist_ok=True)
        for tries_left in reversed(range(_TRIES)):
            descriptor, name = tempfile.mkstemp(dir=target.parent, prefix="fetching-")
            made = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    self._copy(artifact, file.write, on_bytes)
                made.replace(target)
                return
            except (OSError, EOFError, HTTPException) as error:
                if not tries_left or not _is_passing(error):
                    raise CannotFetch(f"{artifact.name} cannot be had from {self.url}: {_reason(error)}") from error
            finally:
                made.unlink(missing_ok=True)

    def _copy(self, artifact: Artifact, write: Callable[[bytes], int], on_bytes: Callable[[int], None]) -> None:
        digest, size = hashlib.sha256(), 0
        request = urllib.request.Request(f"{self.url}/{artifact.path}", headers=self._headers)
        with open_url(request, _TIMEOUT_S) as answer:
            while size <= artifact.size and (piece := answer.read(_PIECE)):
                write(piece)
                digest.update(piece)
                size += len(piece)
                on_bytes(len(piece))
        if size < artifact.size:
            raise EOFError(f"it ended after {size:,} of {artifact.size:,} bytes")
        if size > artifact.size or digest.hexdigest() != artifact.sha256:
            raise CannotFetch(f"{artifact.name} from {self.url} is another file than it should be: its SHA-256 differs")


def _is_passing(error: Exception) -> bool:
    """Whether it is worth asking again."""
    return not isinstance(error, urllib.error.HTTPError) or error.code in _PASSING


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error)
