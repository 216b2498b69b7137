"""Imports single modules of large systems without what those depend on."""
import ast
import importlib.abc
import importlib.machinery
import sys
import types
from pathlib import Path


class Inert(types.ModuleType):
    """A module whose every name is an empty class."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path, target=None):
        if name in self.names or name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Inert(spec.name)

    def exec_module(self, module):
        pass


def inert(*names):
    """Stands in for modules: a name alone covers what is below it, too."""
    sys.meta_path.insert(0, Finder(set(names)))


def package(name, folder):
    """Makes name importable from folder without running its __init__."""
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [str(folder)]


def definitions(path, wanted, **names):
    """Runs the top-level functions and classes of a file that wanted(name) takes."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    tree.body = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and wanted(n.name)]
    code = "from __future__ import annotations\n" + ast.unparse(tree)
    exec(compile(code, str(path), "exec"), names)
    return names
