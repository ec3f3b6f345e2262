"""`tailrace serve` as a process: readiness, settings, stops, and the errors of a failed start."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.protocol.messages import CreateTopicsRequest, DescribeUserScramCredentialsRequest, MetadataRequest
from tests.support.kafka_broker import free_port
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess


def create_topic(bootstrap: str, name: str) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    with RawClient(bootstrap) as client:
        assert client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7).topics[0].error_code == 0


def partitions(bootstrap: str) -> dict[str, int]:
    with RawClient(bootstrap) as client:
        answer = client.ask(MetadataRequest(topics=None), 12)
    return {topic.name: len(topic.partitions) for topic in answer.topics}


def refused(*arguments: object) -> str:
    """Return the error output of `tailrace serve`, which must end with status 2."""
    done = subprocess.run(
        [sys.executable, "-m", "tailrace", "serve", *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    return done.stderr


def test_serve_prints_its_address_and_stops_cleanly(tmp_path: Path) -> None:
    broker = TailraceProcess(tmp_path / "data")
    with broker:
        assert broker.ready_line.startswith(f"tailrace serves PLAINTEXT://127.0.0.1:{broker.port} from {broker.data} (")
        create_topic(broker.bootstrap, "orders")
        assert broker.stop() == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with broker:
        assert partitions(broker.bootstrap) == {"orders": 1}
    assert broker.errors == ""


def test_an_interrupt_stops_cleanly(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data") as broker:
        assert broker.process is not None
        broker.process.send_signal(signal.SIGINT)
        assert broker.process.wait(30) == 0
        broker._forget()
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_settings_are_read_from_a_file_and_from_options(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "# as Apache Kafka's own example has it\nprocess.roles=broker,controller\nnode.id=1\n"
        "num.partitions=3\nnum.io.threads=9\nno.such.key=1\nnum.recovery.threads.per.data.dir=2\n"
    )
    with TailraceProcess(tmp_path / "data", "--config", str(properties)) as broker:
        create_topic(broker.bootstrap, "three")
    with TailraceProcess(tmp_path / "data", "--config", str(properties), "-o", "num.partitions=5") as broker:
        create_topic(broker.bootstrap, "five")
        assert partitions(broker.bootstrap) == {"three": 3, "five": 5}
    assert "no.such.key is not a known setting" in broker.errors
    assert "num.io.threads has no effect" in broker.errors
    assert "num.partitions" not in broker.errors


def test_a_file_with_kafkas_settings_is_accepted(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    port, controller_port = free_port(), free_port()
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        f"log.dirs={tmp_path / 'data'}\n"
    )
    command = [sys.executable, "-m", "tailrace", "serve", "--config", str(properties)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            output = process.stdout.readline()
            listeners = f"PLAINTEXT://127.0.0.1:{port}, CONTROLLER://127.0.0.1:{controller_port}"
            assert output.startswith(f"tailrace serves {listeners} from {tmp_path / 'data'} (")
            socket.create_connection(("127.0.0.1", controller_port), timeout=10).close()
            create_topic(f"127.0.0.1:{port}", "orders")
        finally:
            process.terminate()
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


def test_several_listeners_and_directories_are_served(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tailrace", "serve", "--data", str(tmp_path / "a"), "--data", str(tmp_path / "b")]
    settings = [
        "listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name=INSIDE",
    ]
    for setting in settings:
        command += ["-o", setting]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            ports = {}
            for word in words[2:4]:
                name, _, address = word.rstrip(",").partition("://")
                ports[name] = int(address.rpartition(":")[2])
            assert set(ports) == {"INSIDE", "OUTSIDE"}
            for port in ports.values():  # each listener advertises itself to clients
                with RawClient(f"127.0.0.1:{port}") as client:
                    assert [node.port for node in client.ask(MetadataRequest(topics=[]), 12).brokers] == [port]
        finally:
            process.terminate()
        assert process.wait(30) == 0
    assert (tmp_path / "b" / "meta.properties").exists()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data") as broker:
        output = refused("--data", broker.data, "--port", 0)
        assert output.startswith(f"tailrace: {broker.data} is in use by another process")
        assert output.count("\n") == 1
        assert partitions(broker.bootstrap) == {}


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        output = refused("--data", tmp_path / "data", "--port", port)
    assert (
        output
        == f"tailrace: cannot listen on PLAINTEXT://127.0.0.1:{port}: Address already in use (choose another port)\n"
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["-o", "num.partitions=many"], "Invalid value many for configuration num.partitions"),
        (["-o", "authorizer.class.name=a.b.C"], "a.b.C is not supported"),
        (
            ["-o", "process.roles=broker"],
            "controller.listener.names: a node with process.roles=broker needs at least one",
        ),
        (["-o", "listeners=PLAINTEXT:9092"], "listeners: 'PLAINTEXT:9092' is not a listener"),
        (["-o", "listeners=SSL://:0"], "SSL"),
        (["-o", "num.partitions"], "-o num.partitions is not a setting: write KEY=VALUE"),
        (["-o", "tailrace.slices=magic"], "tailrace.slices: 'magic' is not valid; use sendfile or pread"),
        (["--config", "absent.properties"], "absent.properties: No such file or directory"),
    ],
)
def test_impossible_settings_are_refused_in_one_sentence(tmp_path: Path, arguments: list[str], output: str) -> None:
    text = refused("--data", tmp_path / "data", *arguments)
    assert text.startswith("tailrace: ")
    assert text.count("\n") == 1
    assert output in text
    assert not (tmp_path / "data").exists()


def test_a_start_without_a_data_directory_is_refused() -> None:
    assert refused() == "tailrace: no data directory: give --data DIR, or log.dirs in --config FILE\n"


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data") as broker:
        broker.stop()
    output = refused("--data", tmp_path / "data", "--port", 0, "-o", "node.id=7")
    assert output == f"tailrace: {tmp_path / 'data'} belongs to node 1, not to 7\n"


def modes(directory: Path) -> set[str]:
    """Return the kinds and permissions of a directory and of everything in it."""
    every = [directory, *directory.rglob("*")]
    return {f"{'d' if one.is_dir() else 'f'}{one.stat().st_mode & 0o777:o}" for one in every}


def test_data_is_private_to_its_owner(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data") as broker:
        create_topic(broker.bootstrap, "orders")
        assert broker.stop() == 0
    assert modes(tmp_path / "data") == {"d700", "f600"}


def test_a_umask_applies_to_new_files_only(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)  # whatever the umask of the tests is
    with TailraceProcess(data, "-o", "tailrace.umask=027") as broker:
        create_topic(broker.bootstrap, "orders")
        assert broker.stop() == 0
    assert modes(data) == {"d755", "d750", "f640"}
    assert data.stat().st_mode & 0o777 == 0o755
    assert "tailrace.umask: '888' is not an octal umask" in refused("--data", data, "-o", "tailrace.umask=888")


def test_a_password_is_taken_from_a_file_or_standard_input_but_not_from_an_argument(tmp_path: Path) -> None:
    line = "SCRAM-SHA-512=[name=alice,password=secret]"
    output = refused("--data", tmp_path / "data", "--add-scram", line)
    assert "--add-scram @FILE" in output
    assert "--add-scram -" in output
    assert "secret" not in output
    (tmp_path / "credentials").write_text(line + "\n")
    for source in (f"@{tmp_path / 'credentials'}", "-"):
        data = tmp_path / f"data{len(source)}"
        wrapper = ["sh", "-c", f'exec "$@" < {tmp_path / "credentials"}', "sh"] if source == "-" else ()
        with (
            TailraceProcess(data, "--add-scram", source, wrapper=wrapper) as broker,
            RawClient(broker.bootstrap) as client,
        ):
            answer = client.ask(DescribeUserScramCredentialsRequest(users=None), 0)
            assert [result.user for result in answer.results] == ["alice"]
            assert broker.process is not None
            assert "secret" not in Path(f"/proc/{broker.process.pid}/cmdline").read_text()


def test_a_damaged_metadata_log_is_refused_after_a_clean_stop_and_truncated_after_a_crash(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with TailraceProcess(data) as broker:
        create_topic(broker.bootstrap, "orders")
        assert broker.stop() == 0
    log = data / "__cluster_metadata-0" / "00000000000000000000.log"
    whole = log.read_bytes()
    log.write_bytes(whole[:-20] + bytes([whole[-20] ^ 4]) + whole[-19:])
    output = refused("--data", data)
    assert f"remove {data}/.kafka_cleanshutdown to start without them" in output
    (data / ".kafka_cleanshutdown").unlink()
    with TailraceProcess(data) as broker:
        assert broker.stop() == 0
