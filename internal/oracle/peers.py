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
        if any(name == n or name.startswith(n + ".") for n in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Inert(spec.name)

    def exec_module(self, module):
        pass


def inert(*names):
    """Stands in for modules and what is below them."""
    sys.meta_path.insert(0, Finder(set(names)))


def package(name, folder):
    """Makes name importable from folder without running its __init__."""
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [str(folder)]


def module(name, path, wanted, **names):
    """Makes name importable with only those top-level functions and classes of a file
    that wanted(name) takes; names are what these use of the rest."""
    made = sys.modules[name] = types.ModuleType(name)
    made.__dict__.update(names)
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    tree.body = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and wanted(n.name)]
    exec(compile("from __future__ import annotations\n" + ast.unparse(tree), str(path), "exec"), made.__dict__)
    return made


def verl_algorithms(peers):
    """verl's core_algos; configurations are stood in, and the group statistics, which
    are float32 whatever they are given, take float64."""
    import torch
    for name, folder in (("verl", ""), ("verl.trainer", "trainer"), ("verl.trainer.ppo", "trainer/ppo"), ("verl.workers", "workers"), ("verl.utils", "utils")):
        package(name, peers / "verl" / folder)
    inert("omegaconf", "tensordict", "verl.trainer.config", "verl.workers.config", "verl.utils.device", "verl.utils.import_utils")
    import verl.utils as utils
    from verl.utils import import_utils
    import_utils.deprecated = lambda *_, **__: lambda f: f
    source = peers / "verl" / "utils"
    utils.torch_functional = module("verl.utils.torch_functional", source / "torch_functional.py", lambda n: n.startswith("masked_"), torch=torch)
    groupwise = {}
    exec((source / "groupwise.py").read_text(encoding="utf-8").replace("float32", "float64"), groupwise)
    utils.as_torch_index, utils.group_mean_std = groupwise["as_torch_index"], groupwise["group_mean_std"]
    from verl.trainer.ppo import core_algos
    return core_algos
