"""Artifacts of a Maven repository are downloaded once and verified; failures are reported clearly."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tailrace.local_cluster.kafka_program import NoKafka, controller_jars, installed_jars
from tailrace.local_cluster.maven import Artifact, CannotFetch, MavenRepository

CONTENT = b"jar" * 50_000
JAR = Artifact("org/example/thing/1/thing-1.jar", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


class Repository(ThreadingHTTPServer):
    """A server that responds with `answers` and records the requests."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[tuple[str, str | None]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Repository

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        status, body = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Suppress the log output."""


@pytest.fixture
def served() -> Iterator[Repository]:
    with Repository() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_file_is_downloaded_once(served: Repository, tmp_path: Path) -> None:
    served.answers = [(200, CONTENT)]
    repository = MavenRepository(f"http://{served.address}/maven2/", tmp_path)
    counted: list[int] = []
    for _ in range(2):
        (path,) = repository.fetch([JAR], counted.append)
        assert path.read_bytes() == CONTENT
    assert served.asked == [(f"/maven2/{JAR.path}", None)]
    assert sum(counted) == JAR.size
    assert [one.name for one in path.parent.iterdir()] == ["thing-1.jar"]


def test_a_changed_file_in_the_cache_is_downloaded_again(served: Repository, tmp_path: Path) -> None:
    served.answers = [(200, CONTENT)]
    (tmp_path / JAR.path).parent.mkdir(parents=True)
    (tmp_path / JAR.path).write_bytes(b"x" * JAR.size)
    (path,) = MavenRepository(f"http://{served.address}", tmp_path).fetch([JAR])
    assert path.read_bytes() == CONTENT


def test_a_transient_failure_is_retried(served: Repository, tmp_path: Path) -> None:
    served.answers = [(503, b""), (200, CONTENT[:100]), (200, CONTENT)]
    MavenRepository(f"http://{served.address}", tmp_path).fetch([JAR])
    assert len(served.asked) == 3


def test_a_file_with_a_wrong_checksum_is_refused_and_not_cached(served: Repository, tmp_path: Path) -> None:
    served.answers = [(200, b"x" * JAR.size)]
    with pytest.raises(CannotFetch, match=r"thing-1\.jar from http://.* has a wrong SHA-256"):
        MavenRepository(f"http://{served.address}", tmp_path).fetch([JAR])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_missing_file_is_reported_without_the_password(served: Repository, tmp_path: Path) -> None:
    served.answers = [(404, b"")]
    with pytest.raises(CannotFetch, match="404 Not Found") as refused:
        MavenRepository(f"http://me:s%20cret@{served.address}/maven2", tmp_path).fetch([JAR])
    assert "cret" not in str(refused.value)
    assert served.asked[0][1] == f"Basic {base64.b64encode(b'me:s cret').decode()}"


def test_a_folder_can_be_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there" / JAR.path).parent.mkdir(parents=True)
    (tmp_path / "there" / JAR.path).write_bytes(CONTENT)
    monkeypatch.setenv("TAILRACE_MAVEN_REPOSITORY", (tmp_path / "there").as_uri())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (path,) = MavenRepository.chosen().fetch([JAR])
    assert path == tmp_path / "cache" / "tailrace" / "maven" / JAR.path


def test_a_url_that_is_not_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotFetch, match="TAILRACE_MAVEN_REPOSITORY is not the URL of a repository"):
        MavenRepository("maven.example.com", tmp_path)


def test_the_jars_of_a_controller_have_one_kafka_version() -> None:
    jars = controller_jars()
    ours = [one for one in jars.artifacts if one.path.startswith("org/apache/kafka/")]
    assert len(ours) > 10
    assert all(one.name.endswith(f"-{jars.version}.jar") for one in ours)
    assert all(len(one.sha256) == 64 and one.size > 0 for one in jars.artifacts)


def test_a_folder_without_jars_is_refused_as_kafka_home(tmp_path: Path) -> None:
    with pytest.raises(NoKafka, match="not an installation of Apache Kafka"):
        installed_jars(tmp_path)
