"""The browser page, which a gateway serves at `/`."""

from greenroom.actors.gateway.page.serving import add_page

__all__ = ["add_page"]
