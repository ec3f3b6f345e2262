"""Connections: a pool with one connection per broker."""

from __future__ import annotations

from tailrace.client.network.address import Address
from tailrace.client.network.connection import Connection
from tailrace.client.network.retry_budget import Clock
from tailrace.client.network.sockets import OpenSocket
from tailrace.client.settings import ClientSettings
from tailrace.model.ids import BrokerId


class Connections:
    def __init__(self, settings: ClientSettings, open_socket: OpenSocket | None, clock: Clock) -> None:
        self._settings = settings
        self._open_socket = open_socket
        self._clock = clock
        self._by_address: dict[Address, Connection] = {}

    def get(self, address: Address, node_id: BrokerId | None) -> Connection:
        """Return the open connection to an address, or a new one if it is no longer usable."""
        kept = self._by_address.pop(address, None)
        if kept is None or not kept.is_usable:
            if kept is not None:
                kept.close()
            kept = Connection(
                address, self._settings, node_id=node_id, open_socket=self._open_socket, clock=self._clock
            )
        self._by_address[address] = kept
        return kept

    def usable(self) -> dict[Address, BrokerId | None]:
        """Return the addresses and node ids with a usable connection."""
        return {address: one.node_id for address, one in self._by_address.items() if one.is_usable}

    def close(self) -> None:
        for connection in self._by_address.values():
            connection.close()
        self._by_address.clear()
