"""Every reader of the package, over stand-ins of its trainer and pyarrow alone: it waits for its step, refuses what the trainer does not
expect and sets that are not complete, and tells which rollouts were left out of the batch."""
import importlib
import json
import logging
import os
import sys
import threading
import types
from unittest.mock import MagicMock

import pytest

pa = pytest.importorskip("pyarrow", reason="SKIPPED: no pyarrow in this Python")
import pyarrow.parquet as pq  # noqa: E402

META = {"turnpack.schema_version": "1", "turnpack.tokenizer": "sha256:aa", "turnpack.template": "sha256:bb", "recipe": "dapo"}
PARTS = {"areal.api.workflow_api": ["RolloutWorkflow"], "nemo_rl.distributed.batched_data_dict": ["BatchedDataDict"], "prime_rl.trainer.batch": ["build_bin_cost", "prepare_batch"],
         "prime_rl.transports.rollouts": ["FileSystemMicroBatchSender", "TrainingSample"], "skyrl.train.generators.base": ["GeneratorInterface", "TrajectoryID"],
         "slime.rollout.base_types": ["RolloutFnTrainOutput"], "slime.utils.types": ["Sample"], "trl": ["GRPOTrainer"], "trl.experimental.async_grpo.async_rollout_worker": ["RolloutSample"],
         "megatron.bridge.data.builders.gpt_sft": ["GPTSFTDatasetConfig"], "megatron.bridge.data.packing": ["PackedSequenceSpecs"]}


class StandIn:
    """What a trainer gives: a class to inherit from, to fill, or to ask for members."""

    def __init__(self, *args, **kwargs):
        self.__dict__.update(kwargs)

    Status = MagicMock()


def slime(module, path):
    os.environ["TURNPACK_FILE"] = str(path)
    return module.generate_rollout(types.SimpleNamespace(global_batch_size=1), 0, None)


READERS = {"areal": lambda m, p: m.episodes(p), "nemo_rl": lambda m, p: m.batch(p), "prime_rl": lambda m, p: list(m.training_samples(p)), "prompts": lambda m, p: m.load(p),
           "skyrl": lambda m, p: (m.ExportPrompts(p), m.ExportGenerator(p)), "slime": slime, "trl": lambda m, p: m.RolloutFunction(p), "trl_async": lambda m, p: m.ReplayWorker(p).start()}


@pytest.fixture(params=READERS)
def read(request, monkeypatch):
    """A function that reads a file by one module as its trainer would."""
    for name in ("torch", "numpy", "datasets"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    for name, members in PARTS.items():
        for part in (".".join(name.split(".")[:k + 1]) for k in range(name.count(".") + 1)):
            if not isinstance(sys.modules.get(part), Stub):
                monkeypatch.setitem(sys.modules, part, Stub(part))
        for member in members:
            setattr(sys.modules[name], member, StandIn)
    monkeypatch.setenv("TURNPACK_FILE", "")
    name = "turnpack_trainers." + request.param
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(name)
    yield lambda path: READERS[request.param](module, path)
    sys.modules.pop(name, None)
    delattr(sys.modules["turnpack_trainers"], request.param)


class Stub(types.ModuleType):
    """A module of a trainer."""


def row(rollout, version=3):
    return {"sample_id": f"{rollout}#0", "group_id": "g", "rollout_id": rollout, "sample_index": 0, "is_last": True, "prompt_len": 2, "input_ids": [1, 2, 3, 4], "loss_mask": [0, 0, 1, 1],
            "logprobs": [0.0, 0.0, -0.5, -0.25], "advantages": [0.0, 0.0, 0.5, 0.5], "versions": [-1, -1, version, version], "reward": 1.0, "outcome_reward": 1.0, "advantage": 0.5, "status": "completed",
            "finish_reason": "stop", "temperature": 1.0, "metadata": "{}"}


def write(path, **meta):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([row("g/0"), row("g/1")]).replace_schema_metadata({**META, **meta}), path)
    return path


def test_waits_for_its_step(read, tmp_path, monkeypatch):
    path = tmp_path / "data" / "step_0.parquet"
    monkeypatch.setenv("TURNPACK_WAIT", "0.1")
    with pytest.raises(FileNotFoundError, match="did not come"):
        read(path)
    ready = write(tmp_path / "made.parquet")
    path.parent.mkdir()
    monkeypatch.setenv("TURNPACK_WAIT", "20")
    timer = threading.Timer(0.2, os.rename, (ready, path))
    timer.start()
    read(path)
    timer.join()


@pytest.mark.parametrize("variable, value, why", [("TURNPACK_TOKENIZER", "sha256:zz", "tokenizer sha256:aa"), ("TURNPACK_TEMPLATE", "sha256:zz", "template sha256:bb"), ("TURNPACK_RECIPE", "grpo", "recipe dapo"),
                                                  ("TURNPACK_MIN_VERSION", "4", "policy version 3, 4 is the oldest"), ("TURNPACK_TEMPERATURE", "0.7", "temperature 1")])
def test_refuses_what_the_trainer_does_not_expect(read, tmp_path, monkeypatch, variable, value, why):
    path = write(tmp_path / "batch.parquet")
    read(path)
    other = write(tmp_path / "other.parquet")  # one that no reader has kept
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=why):
        read(other)


@pytest.mark.parametrize("where", ["", "data"])
def test_refuses_a_set_that_is_not_complete(read, tmp_path, where):
    path = write(tmp_path / where / "step_0.parquet")
    (tmp_path / "progress.json").write_text('{"shards": []}')
    with pytest.raises(RuntimeError, match="not complete"):
        read(path)
    (tmp_path / "manifest.json").write_text("{}")
    read(path)


def test_megatron_refuses_a_set_that_is_not_complete(tmp_path, monkeypatch):
    """Its files are read by Megatron-Bridge, and say nothing of a tokenizer."""
    for name, members in PARTS.items():
        for part in (".".join(name.split(".")[:k + 1]) for k in range(name.count(".") + 1)):
            monkeypatch.setitem(sys.modules, part, Stub(part)) if not isinstance(sys.modules.get(part), Stub) else None
        for member in members:
            setattr(sys.modules[name], member, StandIn)
    monkeypatch.delitem(sys.modules, "turnpack_trainers.megatron", raising=False)
    from turnpack_trainers import megatron
    (tmp_path / "train-00000.idx.parquet").write_bytes(b"")
    (tmp_path / "progress.json").write_text('{"shards": []}')
    with pytest.raises(RuntimeError, match="not complete"):
        megatron.packed_dataset(str(tmp_path / "*.idx.parquet"), 64)
    (tmp_path / "manifest.json").write_text("{}")
    megatron.packed_dataset(str(tmp_path / "*.idx.parquet"), 64)


RECORD = {"summary": {"rollouts_without_rows": {"excluded: aborted": 2}, "target_left_out": {"rollout of an incomplete group": 3},
                      "rollouts_without_rows_listed": [{"rollout": "g/7", "reason": "excluded: aborted"}, {"rollout": "g/8", "reason": "excluded: aborted"}]}}


@pytest.mark.parametrize("where", ["", "data"])
def test_tells_which_rollouts_were_left_out(read, tmp_path, caplog, where):
    path = write(tmp_path / where / "step_0.parquet")
    (tmp_path / ".turnpack.json").write_text(json.dumps(RECORD))
    with caplog.at_level(logging.WARNING):
        read(path)
    for told in ("2 excluded: aborted", "3 rollout of an incomplete group", "g/7, g/8"):
        assert told in caplog.text
