"""Puts whole batches through recipes and estimators, and through the trainers' own functions.

usage: diff_recipes.py TURNPACK PEERS MODEL COUNT [SEED]

PEERS is a folder with the packages verl and skyrl, MODEL the folder of examples/tutorial.
Random rollouts of several turns, with tool tokens between them, go through `turnpack
convert`; the masks of its rows must be those that follow from the dump, and the advantage
of each trained token the one that the trainer's function gives the same batch. With
TURNPACK_NEMO_RL, a checkout of NVIDIA-NeMo/RL at 7ea279ab, its estimators run as well.
"""
import ast
import json
import os
import random
import subprocess
import sys
import tempfile
import types
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch

import peers

TURNPACK, PEERS, MODEL, COUNT = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
rand = random.Random(int(sys.argv[5]) if len(sys.argv) > 5 else 1)
torch.set_default_dtype(torch.float64)
TOLERANCE = 1e-6
SOFT = (24, 12, 1.0)  # the longest response, the buffer before it, the penalty


class Config(dict):
    __getattr__ = dict.get


def ids(least, most):
    return [rand.randrange(4000) for _ in range(rand.randint(least, most))]


def batch():
    """Lines of a dump, and its rollouts: group, id, reward, mask of the response, whether a limit cut it."""
    lines, rollouts = [], []
    for g in range(rand.randint(2, 6)):
        prompt, alike = ids(2, 5), rand.random() < 0.25
        for i in range(rand.randint(1, 6)):
            resolved, cut = alike or rand.random() < 0.5, rand.random() < 0.2
            context, turns, mask = list(prompt), [], []
            for step in range(rand.randint(1, 4)):
                if step:
                    tool = ids(1, 5)
                    context, mask = context + tool, mask + [0] * len(tool)
                reply = ids(1, 6) + [4089]
                turns.append({"prompt_ids": list(context), "output_ids": reply, "logprobs": [-0.5] * len(reply), "version": 0, "finish_reason": "stop", "step": step})
                context, mask = context + reply, mask + [1] * len(reply)
            if cut:
                turns[-1]["finish_reason"] = "length"
            lines.append({"turnpack_version": 1, "id": f"g{g}/{i}", "group": f"g{g}", "index": i, "messages": [{"role": "user", "content": "x"}], "turns": turns,
                          "outcome": {"resolved": resolved}, "status": "truncated" if cut else "completed"})
            rollouts.append((f"g{g}", f"g{g}/{i}", resolved, mask, cut))
    return lines, rollouts


def tensors(rollouts, rewards):
    """Rewards on the last token of each response, masks, and group keys, as trainers pad them."""
    width = max(len(r[3]) for r in rollouts)
    given, masks = torch.zeros(len(rollouts), width), torch.zeros(len(rollouts), width)
    for k, (_, _, _, mask, _) in enumerate(rollouts):
        masks[k, : len(mask)] = torch.tensor(mask, dtype=torch.float64)
        given[k, len(mask) - 1] = rewards[k]
    return given, masks, np.array([r[0] for r in rollouts], dtype=object)


def signed(rollouts):
    return [1.0 if r[2] else -1.0 for r in rollouts]


def verl_systems():
    algos = peers.verl_algorithms(PEERS)

    def grpo(rollouts, std):
        given, masks, index = tensors(rollouts, signed(rollouts))
        return rollouts, algos.compute_grpo_outcome_advantage(given, masks, index=index, norm_adv_by_std_in_grpo=std)[0]

    def dapo(rollouts):
        """Groups of one accuracy go first (docs/algo/dapo.md, metric acc), then the punishment of workers/reward_manager/dapo.py."""
        by_group = defaultdict(list)
        for r in rollouts:
            by_group[r[0]].append(r[2])
        kept = [r for r in rollouts if len(set(by_group[r[0]])) > 1 or len(by_group[r[0]]) == 1]
        longest, buffer, penalty = SOFT
        rewards = [x + min(-(len(r[3]) - (longest - buffer)) / buffer * penalty, 0) for r, x in zip(kept, signed(kept))]
        if not kept:
            return [], None
        given, masks, index = tensors(kept, rewards)
        return kept, algos.compute_grpo_outcome_advantage(given, masks, index=index, norm_adv_by_std_in_grpo=True)[0]

    def reinforce(rollouts, gamma):
        given, masks, _ = tensors(rollouts, signed(rollouts))
        return rollouts, algos.compute_reinforce_plus_plus_outcome_advantage(given, masks, config=Config(gamma=gamma))[0]

    def baseline(rollouts):
        given, masks, index = tensors(rollouts, signed(rollouts))
        return rollouts, algos.compute_reinforce_plus_plus_baseline_outcome_advantage(given, masks, index=index)[0]

    yield ["--recipe", "verl-grpo"], lambda r: grpo(r, True)
    yield ["--recipe", "verl-drgrpo"], lambda r: grpo(r, False)
    yield ["--recipe", "verl-dapo", "--soft-overlong", ":".join(map(str, SOFT)) + ":unbounded"], dapo
    yield ["--estimator", "verl_reinforce_pp"], lambda r: reinforce(r, 1.0)
    yield ["--estimator", "verl_reinforce_pp", "--discount", "0.9"], lambda r: reinforce(r, 0.9)
    yield ["--estimator", "verl_reinforce_pp_baseline"], baseline


def bare(path, wanted, **names):
    """Functions of a file without their decorators, and without the rest of it."""
    found = [n for n in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))) if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name in wanted]
    for n in found:
        n.decorator_list = []
    exec(compile("from __future__ import annotations\n" + ast.unparse(ast.Module(found, [])), str(path), "exec"), names)
    return [names[w] for w in wanted]


def skyrl_systems():
    source = PEERS / "skyrl" / "backends" / "skyrl_train" / "utils" / "ppo_utils.py"
    (mean,) = bare(source.with_name("torch_utils.py"), ["masked_mean"], torch=torch)
    _, _, grpo, reinforce = bare(source, ["masked_var", "masked_whiten", "compute_grpo_outcome_advantage", "compute_reinforce_plus_plus_outcome_advantage"],
                                 torch=torch, np=np, defaultdict=defaultdict, masked_mean=mean)

    def by_group(rollouts):
        given, masks, index = tensors(rollouts, signed(rollouts))
        return rollouts, grpo(given, masks, index)[0]

    def by_token(rollouts, gamma):
        given, masks, _ = tensors(rollouts, signed(rollouts))
        return rollouts, reinforce(given, masks, gamma)[0]

    yield ["--recipe", "skyrl"], by_group
    yield ["--estimator", "skyrl_reinforce_pp"], lambda r: by_token(r, 1.0)
    yield ["--estimator", "skyrl_reinforce_pp", "--discount", "0.9"], lambda r: by_token(r, 0.9)


def ours(tmp, flags):
    p = subprocess.run([TURNPACK, "convert", "--model", MODEL, "--in", tmp / "dump.jsonl", "--out", tmp / "out", "--quiet", "--force", *flags], capture_output=True, text=True)
    if p.returncode and "no reward to train on" not in p.stderr:
        raise SystemExit(f"{flags}: {p.stderr}")
    return {} if p.returncode else {r["rollout_id"]: r for r in pq.read_table(tmp / "out" / "batch.parquet").to_pylist()}


def check(lines, rollouts, flags, reference):
    """The number of trained tokens compared."""
    with tempfile.TemporaryDirectory() as tmp:
        (Path(tmp) / "dump.jsonl").write_text("".join(json.dumps(l) + "\n" for l in lines))
        rows = ours(Path(tmp), flags)
    kept, values = reference(rollouts)
    assert {r[1] for r in kept} == rows.keys(), (flags, {r[1] for r in kept} ^ rows.keys())
    tokens = 0
    for k, (_, name, _, mask, _) in enumerate(kept):
        row = rows[name]
        got = row["advantages"] or [row["advantage"]] * len(row["loss_mask"])
        assert row["loss_mask"][row["prompt_len"]:] == mask, (flags, name)
        for t, bit in enumerate(mask):
            want, have = float(values[k, t]), got[row["prompt_len"] + t]
            assert not bit or abs(want - have) <= TOLERANCE * max(1, abs(want)), (flags, name, t, want, have)
            tokens += bit
    return tokens


def nemo_systems(checkout):
    algorithms = Path(checkout) / "nemo_rl" / "algorithms"
    names = types.SimpleNamespace()
    names.baseline, names.mean, names.var = bare(algorithms / "utils.py", ["calculate_baseline_and_std_per_prompt", "masked_mean", "masked_var"], torch=torch, Optional=None)
    config = Config(normalize_rewards=True, use_leave_one_out_baseline=True, minus_baseline=True)
    loss = Config(use_kl_in_reward=False, reference_policy_kl_penalty=0.0)
    (grpo, reinforce) = bare(algorithms / "advantage_estimator.py", ["GRPOAdvantageEstimator", "ReinforcePlusPlusAdvantageEstimator"], torch=torch,
                             calculate_baseline_and_std_per_prompt=names.baseline, masked_mean=names.mean, masked_var=names.var, calculate_kl=None)

    def run(make, rollouts, rewards):
        keys = sorted({r[0] for r in rollouts})
        prompts = torch.tensor([[keys.index(r[0])] for r in rollouts])
        _, masks, _ = tensors(rollouts, rewards)
        given = torch.tensor(rewards)
        return rollouts, make.compute_advantage(prompt_ids=prompts, rewards=given, mask=masks, repeated_batch={"total_reward": given}, logprobs_policy=None, logprobs_reference=None)

    def binary(rollouts):
        return [1.0 if r[2] else 0.0 for r in rollouts]

    def filtered(rollouts):
        """overlong_filtering: a cut rollout stays in the baseline and is not trained."""
        _, values = run(grpo(config, loss), rollouts, binary(rollouts))
        whole = [k for k, r in enumerate(rollouts) if not r[4]]
        return [rollouts[k] for k in whole], values[whole].clamp(-100, 100)

    yield ["--recipe", "nemotron-swe2"], filtered
    yield ["--recipe", "nemo-rl"], lambda r: run(grpo(config, loss), r, binary(r))
    yield ["--estimator", "nemo_reinforce_pp_baseline"], lambda r: run(reinforce(config, loss), r, signed(r))
    yield ["--estimator", "nemo_reinforce_pp"], lambda r: run(reinforce(Config(config, minus_baseline=False), loss), r, signed(r))


def main():
    systems = [*verl_systems(), *skyrl_systems()]
    if os.environ.get("TURNPACK_NEMO_RL"):
        systems += nemo_systems(os.environ["TURNPACK_NEMO_RL"])
    tokens = 0
    for _ in range(COUNT):
        made = batch()
        for flags, reference in systems:
            tokens += check(*made, flags, reference)
    print(f"{COUNT} batches through {len(systems)} recipes and estimators, {tokens} trained tokens: 0 differ")


main()
