"""The gateway: one port at which programs and people reach the runtime."""

from greenroom.actors.client.socket import SocketLimits
from greenroom.actors.gateway.access import Access, AccessToken, read_tokens
from greenroom.actors.gateway.connection import GatewayLimits
from greenroom.actors.gateway.fence import Fence
from greenroom.actors.gateway.handlers import Services
from greenroom.actors.gateway.listener import Gateway, Mount, check_host, open_gateway

__all__ = [
    "Access",
    "AccessToken",
    "Fence",
    "Gateway",
    "GatewayLimits",
    "Mount",
    "Services",
    "SocketLimits",
    "check_host",
    "open_gateway",
    "read_tokens",
]
