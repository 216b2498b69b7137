"""Readers of turnpack export files, a module per trainer; `files` reads and checks for all of them."""
from .files import Expected, read_rows, require_complete

__all__ = ["Expected", "read_rows", "require_complete"]
