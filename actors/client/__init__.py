"""The Python client of a gateway."""

from greenroom.actors.client.attachment import AttachedTerminal
from greenroom.actors.client.client import Client
from greenroom.actors.client.connecting import Reconnect, connect
from greenroom.actors.client.following import FollowedRun
from greenroom.actors.client.socket import SocketLimits

__all__ = ["AttachedTerminal", "Client", "FollowedRun", "Reconnect", "SocketLimits", "connect"]
