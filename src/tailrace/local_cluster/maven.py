"""MavenRepository: downloads files of a Maven repository once, verifies them, and keeps them in the user's cache.

    repository = MavenRepository.chosen()
    paths = repository.fetch(artifacts, on_bytes=progress.advance)

An artifact is identified by its path, size and SHA-256, so any repository can be used: Maven Central, or the URL in
TAILRACE_MAVEN_REPOSITORY (http, https or file; it may contain a user name and password). The cache has only complete
files, and each file is verified every time it is used.
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
_TRANSIENT: Final = frozenset({408, 429, 500, 502, 503, 504})


class Artifact(NamedTuple):
    path: str  # in the repository's layout
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class CannotFetch(Exception):
    """An artifact cannot be downloaded; the message has its name, the repository and the reason."""


class MavenRepository:
    def __init__(self, url: str, cache: Path) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https", "file"):
            raise CannotFetch(f"{VARIABLE} is not the URL of a repository: it must start with http, https or file")
        self._headers = {"User-Agent": "tailrace"}
        place = parts.netloc.rpartition("@")[2]
        if parts.username is not None:
            secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(secret.encode()).decode()}"
        self.url = urllib.parse.urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))  # without the secret
        self._cache = cache

    @classmethod
    def chosen(cls) -> MavenRepository:
        """Return the repository of TAILRACE_MAVEN_REPOSITORY, or Maven Central, with the user's cache directory."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tailrace", "maven")
        return cls(os.environ.get(VARIABLE) or MAVEN_CENTRAL, cache)

    def missing(self, artifacts: Sequence[Artifact]) -> list[Artifact]:
        """Return the artifacts that are not, or not correctly, in the cache."""
        return [one for one in artifacts if not self._is_cached(one)]

    def fetch(self, artifacts: Sequence[Artifact], on_bytes: Callable[[int], None] = lambda size: None) -> list[Path]:
        """Return the files, after downloading missing ones. Raise CannotFetch if a download fails."""
        with ThreadPoolExecutor(_AT_ONCE) as several:
            for _ in several.map(lambda one: self._fetch(one, on_bytes), self.missing(artifacts)):
                pass
        return [self._cached_path(one) for one in artifacts]

    def _cached_path(self, artifact: Artifact) -> Path:
        return self._cache / artifact.path

    def _is_cached(self, artifact: Artifact) -> bool:
        path = self._cached_path(artifact)
        if not path.exists() or path.stat().st_size != artifact.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256

    def _fetch(self, artifact: Artifact, on_bytes: Callable[[int], None]) -> None:
        target = self._cached_path(artifact)
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
                if not tries_left or not _is_transient(error):
                    raise CannotFetch(
                        f"{artifact.name} cannot be downloaded from {self.url}: {_reason(error)}"
                    ) from error
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
            raise EOFError(f"the download ended after {size:,} of {artifact.size:,} bytes")
        if size > artifact.size or digest.hexdigest() != artifact.sha256:
            raise CannotFetch(f"{artifact.name} from {self.url} has a wrong SHA-256: it is not the expected file")


def _is_transient(error: Exception) -> bool:
    """Return True if a retry may succeed."""
    return not isinstance(error, urllib.error.HTTPError) or error.code in _TRANSIENT


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error)
