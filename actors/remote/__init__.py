"""Remote methods: typed methods of services that programs call from outside."""

from greenroom.actors.remote.endpoint import Endpoint, StreamEndpoint
from greenroom.actors.remote.lookups import Lookups, Resolve
from greenroom.actors.remote.marks import remote, remote_stream
from greenroom.actors.remote.services import RemoteServices

__all__ = ["Endpoint", "Lookups", "RemoteServices", "Resolve", "StreamEndpoint", "remote", "remote_stream"]
