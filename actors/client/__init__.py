"""The Python client of a gateway."""

from greenroom.actors.client.attachment import AttachedTerminal
from greenroom.actors.client.client import Client, Reconnect, connect
from greenroom.actors.client.socket import SocketLimits

__all__ = ["AttachedTerminal", "Client", "Reconnect", "SocketLimits", "connect"]
