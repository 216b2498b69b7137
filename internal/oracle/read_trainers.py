"""Feeds the loaders of examples/trainers to the packages they are for, without a GPU.

usage: read_trainers.py PEERS LOADERS FOLDER

PEERS is a folder with the packages verl, skyrl and areal; LOADERS is examples/trainers;
FOLDER holds verl.parquet, skyrl.parquet and areal.parquet, written for these targets.
The packages' own classes, validators and padding take what the loaders give; then each
row must be there token for token, with its mask, log probabilities and credit.
"""
import abc
import asyncio
import sys
import typing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import peers

PEERS, LOADERS, FOLDER = map(Path, sys.argv[1:4])
sys.path.append(str(LOADERS))


def rows(name):
    return pq.read_table(FOLDER / f"{name}.parquet").to_pylist()


def same(what, want, got):
    if not np.allclose(np.asarray(want, dtype=float), np.asarray(got, dtype=float), rtol=0, atol=1e-6):
        raise SystemExit(f"{what}: the file says {want}, the trainer has {got}")


def verl():
    algorithms = peers.verl_algorithms(PEERS)
    import pydantic
    for name in ("verl.experimental", "verl.experimental.agent_loop"):
        peers.package(name, "")
    peers.module("verl.experimental.agent_loop.agent_loop", PEERS / "verl/experimental/agent_loop/agent_loop.py",
                 lambda n: n in ("AgentLoopMetrics", "AgentLoopOutput", "AgentLoopBase", "register"), torch=torch, BaseModel=pydantic.BaseModel,
                 Any=typing.Any, Optional=typing.Optional, ABC=abc.ABC, abstractmethod=abc.abstractmethod, _agent_loop_registry={})
    from turnpack_trainers import verl as loader
    path, prompts = str(FOLDER / "verl.parquet"), str(FOLDER / "prompts.parquet")
    loader.write_prompts(path, prompts)
    want, seen = {tuple(r["input_ids"]): r for r in rows("verl")}, 0
    replay = object.__new__(loader.ReplayLoop)
    replay.rollout_config = {"prompt_length": 1 << 20, "response_length": 1 << 20, "temperature": next(iter(want.values()))["temperature"]}
    for prompt in pq.read_table(prompts).to_pylist():
        for session in range(prompt["__rollout_n__"]):
            for output in asyncio.run(replay.run({}, session_id=session, **prompt)):
                got = output.as_dict()
                ids = got["prompts"].tolist() + got["responses"].tolist()
                row, seen = want[tuple(ids)], seen + 1
                cut, mask = row["prompt_len"], got["response_mask"]
                same("verl mask", row["loss_mask"][cut:], mask)
                same("verl logprobs", row["logprobs"][cut:], got["rollout_log_probs"])
                advantages, _ = algorithms.get_adv_estimator_fn("turnpack")(got["rm_scores"][None], mask[None])
                same("verl advantages", [row["advantage"] * m for m in row["loss_mask"][cut:]], advantages[0])
    return seen


def skyrl():
    peers.inert("skyrl.backends", "loguru")
    for name, folder in (("skyrl", ""), ("skyrl.train", "train"), ("skyrl.train.generators", "train/generators")):
        peers.package(name, PEERS / "skyrl" / folder)
    checks = peers.module("skyrl_checks", PEERS / "skyrl/train/utils/trainer_utils.py", lambda n: n in ("validate_generator_output", "_validate_step_wise_fields"), np=np)
    pads = peers.module("skyrl_pads", PEERS / "skyrl/train/dataset/preprocess.py", lambda n: n in ("_verify_inputs", "convert_prompts_responses_to_batch_tensors"), torch=torch)
    from turnpack_trainers import skyrl as loader
    from skyrl.train.generators.base import TrajectoryID
    # The first rollout of a group gives no row: its number is missing in the file.
    every = rows("skyrl")
    groups = dict.fromkeys(r["group_id"] for r in every)
    want = [r for r in every if (r["group_id"], r["rollout_index"]) != (every[0]["group_id"], 0)]
    file = FOLDER / "skyrl-hole.parquet"
    pq.write_table(pa.Table.from_pylist(want, pq.read_schema(FOLDER / "skyrl.parquet")), file)
    generator, n = loader.ExportGenerator(file), 1 + max(r["rollout_index"] for r in every)
    generate = lambda ids, repetitions: asyncio.run(generator.generate({"trajectory_ids": [TrajectoryID(g, k) for g in ids for k in range(repetitions)]}))
    output = generate(groups, n)
    checks.validate_generator_output(n * len(groups), output, step_wise=True)
    assert len(output["response_ids"]) == len(want) < len(every), (len(output["response_ids"]), len(want), len(every))
    for ids, repetitions, why in ((groups, n - 1, ValueError), ([*groups, "of another file"], n, KeyError)):
        try:
            raise SystemExit(f"skyrl: {generate(ids, repetitions) and repetitions} repetitions of {len(ids)} groups were taken")
        except why:
            pass
    credit = [[0.0] * (len(ids) - 1) + [r] for ids, r in zip(output["response_ids"], output["rewards"])]
    ids, attention, action, rewards, masks, logprobs, *_ = pads.convert_prompts_responses_to_batch_tensors(
        SimpleNamespace(pad_token_id=0), output["prompt_token_ids"], output["response_ids"], credit, output["loss_masks"], output["rollout_logprobs"])
    for i, row in enumerate(want):
        cut = row["prompt_len"]
        same("skyrl ids", row["input_ids"], ids[i][attention[i].bool()])
        same("skyrl mask", row["loss_mask"][cut:], masks[i][action[i].bool()])
        same("skyrl logprobs", row["logprobs"][cut:], logprobs[i][action[i].bool()])
        same("skyrl reward", row["reward"], rewards[i].sum())
    return len(want)


def areal():
    for name, folder in (("areal", ""), ("areal.api", "api")):
        peers.package(name, PEERS / "areal" / folder)
    data = peers.module("areal_data", PEERS / "areal/utils/data.py", lambda n: n in ("concat_padded_tensors", "_pad_cat_dim0", "is_multi_modal_key", "get_batch_size"), torch=torch, F=torch.nn.functional)
    from turnpack_trainers import areal as loader
    want, episodes = rows("areal"), loader.episodes(FOLDER / "areal.parquet")
    batch = data.concat_padded_tensors([asyncio.run(loader.ReplayWorkflow().arun_episode(None, e)) for e in episodes])
    for i, row in enumerate(want):
        real = batch["attention_mask"][i].bool()
        for field in ("input_ids", "loss_mask", "logprobs", "versions"):
            same("areal " + field, row[field], batch[field][i][real])
        same("areal reward", row["advantage"], batch["rewards"][i])
    return len(want)


def main():
    counts = {f.__name__: f() for f in (verl, skyrl, areal)}
    assert all(counts.values()), counts
    print(", ".join(f"{name} {n} rows" for name, n in counts.items()) + ", 0 differ")


main()
