"""LastWill: the report of a dead broker, sent by a separate process."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from typing import Any

from tailrace.client.network.address import Address
from tailrace.model.errors import ErrorCode
from tailrace.protocol.headers import read_request_header
from tailrace.protocol.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tailrace.server.peers.last_will import LastWill

PATIENCE_S = 60


class Controller:
    """A socket that hears one request at a time."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE_S)
        self.address = Address("127.0.0.1", self._listening.getsockname()[1])

    def receive(self, error: ErrorCode = ErrorCode.NONE) -> Any:
        """Respond to the next heartbeat with an error code. Return the heartbeat."""
        connection, _ = self._listening.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            data = connection.recv(4_096)
            header, position = read_request_header(data[4:])
            assert header.api_key == BrokerHeartbeatRequest.SCHEMA.api_key
            body = BrokerHeartbeatRequest.decode(data[4:], header.api_version, position)
            answer = struct.pack(">ib", header.correlation_id, 0)
            answer += BrokerHeartbeatResponse(error_code=error).encode(header.api_version)
            connection.sendall(struct.pack(">i", len(answer)) + answer)
        return body

    def has_received_nothing(self) -> bool:
        self._listening.setblocking(False)
        try:
            self._listening.accept()
        except BlockingIOError:
            return True
        return False


def test_the_last_will_of_a_killed_broker_requests_to_be_fenced() -> None:
    controller = Controller()
    program = (
        "import sys, signal; from tailrace.server.peers.last_will import LastWill; "
        "from tailrace.client.network.address import Address; will = LastWill(); "
        f"will.write(4, 16, [Address('127.0.0.1', {controller.address.port})]); "
        f"will.write(4, 17, [Address('127.0.0.1', {controller.address.port})]); "
        "print('written', flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == b"written\n"
        broker.kill()
    output = controller.receive()
    assert (output.broker_id, output.broker_epoch, output.want_fence, output.want_shut_down) == (4, 17, True, False)


def test_the_report_is_sent_until_the_active_controller_responds() -> None:
    gone, standby, active = Controller(), Controller(), Controller()
    gone._listening.close()
    will = LastWill()
    will.write(1, 2, [gone.address, standby.address, active.address])
    will.close(is_revoked=False)
    standby.receive(ErrorCode.NOT_CONTROLLER)
    assert active.receive().broker_epoch == 2
    assert os.waitstatus_to_exitcode(os.waitpid(will._pid, 0)[1]) == 0


def test_a_revoked_will_sends_nothing() -> None:
    controller = Controller()
    will = LastWill()
    will.write(1, 2, [controller.address])
    will.close(is_revoked=True)  # which waits for the process to end
    assert controller.has_received_nothing()


def test_a_signal_to_all_processes_does_not_end_the_will_process() -> None:
    controller = Controller()
    will = LastWill()
    will.write(1, 2, [controller.address])
    os.kill(will._pid, signal.SIGTERM)
    os.kill(will._pid, signal.SIGINT)
    will.close(is_revoked=False)
    assert controller.receive().want_fence
    os.waitpid(will._pid, 0)
