"""Relations between the tables of a database: rows are loaded with those that belong to them."""

from greenroom.actors.relation.manager import RelationManager
from greenroom.actors.relation.model import Model

__all__ = ["Model", "RelationManager"]
