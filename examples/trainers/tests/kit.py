"""Dumps with every kind of rollout, what a batch of them trains (computed from the dumps alone), and trainers' code taken in alone.

In the dump: a fork, tool output within a row, a rollout cut off, one aborted, one without a reply, ragged groups, a group without
spread, one of a single rollout, turns of several policy versions; in SCORED each step that was sampled has a score as well."""
import abc
import importlib.abc
import importlib.machinery
import json
import math
import os
import re
import statistics
import subprocess
import sys
import types
import typing
from dataclasses import dataclass
from pathlib import Path

import pytest

MODEL = Path(__file__).resolve().parents[2] / "tutorial" / "model"
RATIO = 0.95  # of the policy to the recorded one, inside every clip
VOCABULARY = 32


def turn(prompt, output, version=4, finish="stop"):
    return {"prompt_ids": prompt, "output_ids": output, "logprobs": [-0.1 * (i + 1) for i in range(len(output))], "version": version, "finish_reason": finish}


def rollout(group, k, reward, turns, status="completed"):
    return {"turnpack_version": 1, "id": f"{group}-{k}", "group": group, "status": status, "temperature": 1.0, "outcome": {"reward": reward}, "turns": turns}


FORK = [turn([1, 2, 3], [4, 5], 3), turn([1, 9, 9, 3], [6, 7, 8])]
TOOLS = [turn([1, 2, 3], [4, 5, 6], 3), turn([1, 2, 3, 4, 5, 6, 20, 21], [7, 8], 5)]
DUMP = [rollout("ragged", 0, 1.0, FORK), rollout("ragged", 1, 0.0, TOOLS), rollout("ragged", 2, 0.25, [turn([1, 2, 3], [9, 8, 7, 6], 4, "length")], "truncated"),
        rollout("zero", 0, 0.5, [turn([1, 7], [4])]), rollout("zero", 1, 0.5, [turn([1, 7], [5, 4])]), rollout("single", 0, 1.0, [turn([1, 8], [4, 4, 4])]),
        rollout("aborted", 0, 1.0, [turn([1, 6], [4, 5])]), rollout("aborted", 1, 0.0, [turn([1, 6], [5])]), rollout("aborted", 2, 0.0, [turn([1, 6], [5, 5])], "aborted"),
        rollout("unsampled", 0, 1.0, [turn([1, 5], [4, 5])]), rollout("unsampled", 1, 0.0, [turn([1, 5], [6])]), rollout("unsampled", 2, 0.0, [])]
SCORES = {"ragged-0": [1.0, -1.0], "ragged-1": [0.0, 1.0], "ragged-2": [-1.0], "single-0": [0.5], "aborted-0": [1.0], "aborted-1": [-1.0], "unsampled-0": [1.0],
          "unsampled-1": [0.0], "zero-0": [1.0], "zero-1": [1.0]}
SCORED = [{**r, "steps": [{"step": i, "score": s} for i, s in enumerate(SCORES.get(r["id"], []))]} for r in DUMP]
# What convert is told of scores: that they are in the reward of the rollout, or that steps are compared.
FLAGS = {"": [], "reward": ["--step-coef", "0.5"], "steps": ["--estimator", "openclaw_step_wise", "--step-coef", "1"]}


@dataclass
class Want:
    """A row as it must reach the loss: values of each token."""

    group: str
    mask: list
    advantages: list
    logprobs: list
    of_rollout: int = 0  # trained tokens of all rows of its rollout


def compared(values, own, population=False, alone=0.0):
    """The advantage of one reward among those of its group."""
    spread = (statistics.pstdev if population else statistics.stdev)(values) if len(values) > 1 else 0.0
    return alone if len(values) == 1 else (own - statistics.mean(values)) / (spread + 1e-6) if spread else 0.0


def expected(per_step, dump=DUMP, scores=""):
    """{(rollout, ids): Want} of each row. scores: "" none, "reward" half of their mean in the reward, "steps" each step compared
    with the same step of its group's other rollouts, by outcome plus score (equal ones are not trained, single ones keep theirs)."""
    counted = [r for r in dump if r["status"] != "aborted" and r["turns"]]

    def reward(r):
        return r["outcome"]["reward"] + (0.5 * statistics.mean(s["score"] for s in r["steps"]) if scores == "reward" else 0.0)

    def advantage(r, step):
        group = [o for o in counted if o["group"] == r["group"]]
        if scores != "steps":
            return compared([reward(o) for o in group], reward(r))
        values = [o["outcome"]["reward"] + o["steps"][step]["score"] for o in group if step < len(o["steps"])]
        own = r["outcome"]["reward"] + r["steps"][step]["score"]
        return None if len(values) > 1 and len(set(values)) == 1 else compared(values, own, True, own)

    want = {}
    for r in counted:
        ids, row, rows = [], None, []
        for step, t in enumerate(r["turns"]):
            if per_step or row is None or t["prompt_ids"][:len(ids)] != ids:
                ids, row = [], Want(r["group"], [], [], [])
                rows.append((row, ids))
            a, new = advantage(r, step), t["prompt_ids"][len(ids):]
            n = len(t["output_ids"])
            row.mask += [0] * len(new) + [int(a is not None)] * n
            row.advantages += [0.0] * len(new) + [a or 0.0] * n
            row.logprobs += [0.0] * len(new) + t["logprobs"]
            ids += new + t["output_ids"]
        for row, ids in rows:
            row.of_rollout = sum(sum(w.mask) for w, _ in rows)
            if any(row.mask):
                want[r["id"], tuple(ids)] = row
    return want


def token_mean(want):
    """{row: gradient of each token} of the clipped loss, as a mean over all trained tokens."""
    total = sum(sum(w.mask) for w in want.values())
    return {key: [-RATIO * a * m / total for a, m in zip(w.advantages, w.mask)] for key, w in want.items()}


def rollout_mean(want, rollouts):
    """The same as a mean over rollouts, each the mean over its trained tokens."""
    return {key: [-RATIO * a * m / w.of_rollout / rollouts for a, m in zip(w.advantages, w.mask)] for key, w in want.items()}


def near(values):
    return pytest.approx(values, abs=1e-6)


def commands(trainer):
    """The indented lines of a README that are command lines, whole."""
    text = (Path(__file__).resolve().parents[1] / trainer / "README.md").read_text().replace("\\\n", " ")
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.startswith("    ")]


def command():
    binary = os.environ.get("TURNPACK_BIN")
    if not binary:
        pytest.skip("SKIPPED: set TURNPACK_BIN to the turnpack command")
    return binary


def checkout(name, trainer):
    """The checkout that an environment variable names."""
    path = os.environ.get(name)
    if not path:
        pytest.skip(f"SKIPPED: set {name} to a checkout of {trainer}")
    return Path(path)


def write_dump(path, dump):
    path.write_text("".join(json.dumps(r) + "\n" for r in dump))
    return path


@dataclass
class Batch:
    """A dump as one of the cases of a test converts it."""

    folder: Path
    per_step: bool
    scores: str

    def convert(self, target, *flags, dump=None):
        """The folder of a batch for a target, and its rows to be."""
        dump = dump or (SCORED if self.scores else DUMP)
        source, out = write_dump(self.folder / "dump.jsonl", dump), self.folder / "batch"
        done = subprocess.run([command(), "convert", "--model", MODEL, "--in", source, "--out", out, "--quiet", "--format", "native",
                               "--mode", "perstep" if self.per_step else "merged", "--target", target, *flags, *FLAGS[self.scores]], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return out, expected(self.per_step, dump, self.scores)


CASES = {"merged": (False, ""), "perstep": (True, ""), "merged-scores": (False, "reward"), "perstep-scores": (True, "reward"), "merged-steps": (False, "steps"), "perstep-steps": (True, "steps")}
# A row has one advantage for these: steps are rows of their own, or their scores are in the reward of the rollout.
BY_ROW = [c for c in CASES if c != "merged-steps"]
BY_ROLLOUT = [c for c in BY_ROW if c != "perstep-steps"]  # and a rollout has one for these


def cases(names=CASES):
    """A fixture of batches."""
    return pytest.fixture(params=list(names))(lambda tmp_path, request: Batch(tmp_path, *CASES[request.param]))


def logits_of(torch, ids, policy):
    """Logits [T, V], to be differentiated, of a policy that gives ids[t + 1] the log probability policy[t + 1]; and a
    function that takes a gradient of them to one of those log probabilities."""
    out = torch.zeros(len(ids), VOCABULARY)
    for t in range(len(ids) - 1):
        p = math.exp(policy[t + 1]) if policy[t + 1] < 0 else 0.5
        out[t] = math.log((1 - p) / (VOCABULARY - 1))
        out[t, ids[t + 1]] = math.log(p)
    return out


def slopes_of(gradient, ids, policy):
    """Gradients of log probabilities from those of logits_of: that of a logit is (1 - p) times it."""
    return [0.0] + [gradient[t, ids[t + 1]].item() / (1 - (math.exp(policy[t + 1]) if policy[t + 1] < 0 else 0.5)) for t in range(len(ids) - 1)]


class Stand(abc.ABCMeta):
    """The class of empty classes, whose members are such classes."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = empty(name, cls.__module__)
        setattr(cls, name, made)
        return made


def empty(name, module):
    """Its objects are decorators that change nothing."""
    return Stand(name, (), {"__init__": lambda self, *a, **k: None, "__call__": lambda self, decorated=None, *a, **k: decorated, "__module__": module})


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports packages that are not there, engines and kernels that the code at hand does not call: every name in them is an empty class."""

    def __init__(self, *packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):
        absent = any(name == p or name.startswith(p + ".") for p in self.packages)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if absent else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []

        def member(name):
            if name.startswith("__") and name != "__version__":
                raise AttributeError(name)
            made = "9.9" if name == "__version__" else empty(name, spec.name)
            setattr(module, name, made)
            return made

        module.__getattr__ = member
        return module

    def exec_module(self, module):
        pass


def as_of_python_3_12():
    """Gives an older Python the names of typing that trainers want."""
    if sys.version_info < (3, 12):
        typing_extensions = pytest.importorskip("typing_extensions")
        typing.TypedDict, typing.override = typing_extensions.TypedDict, typing_extensions.override


@pytest.fixture(scope="module")
def patched():
    """monkeypatch of the tests of a file."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def taken_in(patched):
    """taken_in(packages, paths, absent): imports trainers' packages from checkouts, and stands in for packages that are absent; both
    are forgotten after the tests of the file, with our modules over them."""
    own, before = [], {}

    def forget():
        kept = {n: m for n, m in sys.modules.items() if n.split(".")[0] in own or n.startswith("turnpack_trainers.")}
        for name in kept:
            del sys.modules[name]
            package, _, last = name.rpartition(".")
            if package == "turnpack_trainers":
                vars(sys.modules[package]).pop(last, None)
        return kept

    def take(packages, paths, *absent):
        own.extend([*packages, *absent])
        before.update(forget())
        for path in paths:
            patched.syspath_prepend(str(path))
        patched.setattr(sys, "meta_path", [Absent(*absent), *sys.meta_path])

    yield take
    forget()
    sys.modules.update(before)
