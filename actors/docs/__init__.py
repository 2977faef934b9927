"""Catalogs that are written from the code: what stands in them cannot differ from what runs."""

from greenroom.actors.docs.members import Member, members_of, type_text

__all__ = ["Member", "members_of", "type_text"]
