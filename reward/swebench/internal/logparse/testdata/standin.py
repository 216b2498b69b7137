"""Stand-ins for the third-party modules that swebench imports and its log
parsers do not need (docker, network)."""
import importlib.abc
import importlib.machinery
import sys
from unittest.mock import MagicMock


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for any missing third-party module."""

    def find_spec(self, name, path, target=None):
        if name.split(".")[0] not in sys.stdlib_module_names | {"swebench"}:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module

    def exec_module(self, module):
        pass
