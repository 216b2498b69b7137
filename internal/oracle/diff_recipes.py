"""Puts whole batches through recipes and estimators, and through the trainers' own functions.

usage: diff_recipes.py TURNPACK PEERS MODEL COUNT [SEED [GOLDEN]]

PEERS is a folder with the packages verl, skyrl and areal, MODEL the folder of
examples/tutorial. Random rollouts of several turns, with tool tokens between them, go
through `turnpack convert`; the masks of its rows must be those that follow from the dump,
the advantage of each trained token the one that the trainer's function gives the same
batch, and its loss weight the derivative of the trainer's own loss by that of the token.
Checkouts of other trainers that an environment variable names run as well:
TURNPACK_NEMO_RL (7ea279ab), TURNPACK_PRIME_RL (559b4477), TURNPACK_SLIME (624b824a),
TURNPACK_TRL (f2cd5771) and TURNPACK_OPENCLAW (0d034dd, its loss). GOLDEN is a file for the
batches with what the trainers made of them (recipe/testdata/batches.jsonl, by all checkouts).
"""
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
import trainers
from trainers import Config, bare

TURNPACK, PEERS, MODEL, COUNT = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
rand = random.Random(int(sys.argv[5]) if len(sys.argv) > 5 else 1)
torch.set_default_dtype(torch.float64)
TOLERANCE = 1e-6
SOFT = (24, 12, 1.0)  # the longest response, the buffer before it, the penalty


def ids(least, most):
    return [rand.randrange(4000) for _ in range(rand.randint(least, most))]


def batch():
    """Lines of a dump, and its rollouts: group, id, reward, mask of the response, whether a limit
    cut it, turns, tokens of the prompt. One that failed by infrastructure is in the lines alone."""
    lines, rollouts = [], []
    for g in range(rand.randint(2, 6)):
        prompt, alike = ids(2, 5), rand.random() < 0.25
        if rand.random() < 0.3:
            lines.append({"turnpack_version": 1, "id": f"g{g}/lost", "group": f"g{g}", "index": 9, "messages": [{"role": "user", "content": "x"}], "status": "failed",
                          "turns": [{"prompt_ids": prompt, "output_ids": [5, 4089], "logprobs": [-1, -1], "version": 0}], "outcome": {}})
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
            rollouts.append((f"g{g}", f"g{g}/{i}", resolved, mask, cut, len(turns), len(prompt)))
    return lines, rollouts


def tensors(rollouts, rewards):
    """Rewards on the last token of each response, masks, and group keys, as trainers pad them."""
    width = max(len(r[3]) for r in rollouts)
    given, masks = torch.zeros(len(rollouts), width), torch.zeros(len(rollouts), width)
    for k, (_, _, _, mask, *_) in enumerate(rollouts):
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
    if p.returncode and "no reward to train on" not in p.stderr and "no rollout gave a row" not in p.stderr:
        raise SystemExit(f"{flags}: {p.stderr}")
    return {} if p.returncode else {r["rollout_id"]: r for r in pq.read_table(tmp / "out" / "batch.parquet").to_pylist()}


def check(lines, rollouts, flags, reference, golden):
    """The number of trained tokens compared; golden gets the advantages of rollouts."""
    with tempfile.TemporaryDirectory() as tmp:
        (Path(tmp) / "dump.jsonl").write_text("".join(json.dumps(l) + "\n" for l in lines))
        rows = ours(Path(tmp), flags)
    kept, values = reference(rollouts)
    assert {r[1] for r in kept} == rows.keys(), (flags, {r[1] for r in kept} ^ rows.keys())
    tokens = 0
    if flags[0] == "--recipe" and (len(flags) == 2 or flags[1] == "verl-dapo"):  # DAPO with SOFT in place of its 20,480 tokens
        golden[flags[1]] = {r[1]: float(values[k][r[3].index(1)]) for k, r in enumerate(kept)}
    for k, (_, name, _, mask, *_) in enumerate(kept):
        row = rows[name]
        got = row["advantages"] or [row["advantage"]] * len(row["loss_mask"])
        assert row["loss_mask"][row["prompt_len"]:] == mask, (flags, name)
        for t, bit in enumerate(mask):
            want, have = float(values[k][t]), got[row["prompt_len"] + t]
            assert not bit or abs(want - have) <= TOLERANCE * max(1, abs(want)), (flags, name, t, want, have)
            tokens += bit
    return tokens


def every(rollouts, values):
    """One value of a rollout for each of its tokens."""
    return [[v] * len(r[3]) for r, v in zip(rollouts, values)]


def binary(rollouts):
    return [1.0 if r[2] else 0.0 for r in rollouts]


def prime_systems(checkout):
    score = trainers.prime_rl(checkout)

    def compared(rollouts, penalty=None, rewards=signed):
        """Rollouts whose advantage is 0 are filtered."""
        values = [None] * len(rollouts)
        for key in {r[0] for r in rollouts}:
            at = [k for k, r in enumerate(rollouts) if r[0] == key]
            usages = [(sum(r[3]), len(r[3]) + r[6], r[5]) for r in (rollouts[k] for k in at)]
            for k, value in zip(at, score([rewards(rollouts)[k] for k in at], usages, penalty)):
                values[k] = value
        left = [k for k, v in enumerate(values) if abs(v) > 1e-9]
        return [rollouts[k] for k in left], every([rollouts[k] for k in left], [values[k] for k in left])

    yield ["--recipe", "prime-rl"], compared
    yield ["--recipe", "prime-rl-swe"], lambda r: compared(r, (0.0, 0.1, 0.1), binary)
    yield ["--recipe", "prime-rl", "--scale", "binary", "--length-penalty", "0.25:0.1:0.3"], lambda r: compared(r, (0.25, 0.1, 0.3), binary)


def slime_systems(checkout):
    score, returns = trainers.slime(checkout), trainers.slime_returns(checkout)

    def compared(rollouts):
        """A group of one has no deviation: its advantage is none."""
        values = trainers.group_slices(score, rollouts, signed(rollouts))
        left = [k for k, v in enumerate(values) if v == v]
        return [rollouts[k] for k in left], every([rollouts[k] for k in left], [values[k] for k in left])

    yield ["--recipe", "slime"], compared
    centred = lambda r: (r, every(r, trainers.group_slices(lambda x, n: score(x, n, "reinforce_plus_plus_baseline"), r, signed(r))))
    yield ["--estimator", "slime_grpo_nostd:key"], centred
    yield ["--estimator", "slime_reinforce_pp"], lambda r: (r, returns([x[3] for x in r], signed(r), 1.0))
    yield ["--estimator", "slime_reinforce_pp", "--discount", "0.9"], lambda r: (r, returns([x[3] for x in r], signed(r), 0.9))


def trl_systems(checkout):
    score, _ = trainers.trl(checkout)
    yield ["--recipe", "trl"], lambda r: (r, every(r, trainers.group_slices(score, r, signed(r))))


def areal_systems():
    score = trainers.areal(PEERS)
    yield ["--recipe", "areal"], lambda r: (r, every(r, trainers.group_slices(score, r, binary(r))))


def losses():
    """By aggregation: the weights of the trained tokens of rows, from masks, groups and rollouts of these."""
    algos = peers.verl_algorithms(PEERS)

    def derived(loss, masks):
        x = torch.ones_like(masks, requires_grad=True)
        loss(x, masks).backward()
        return x.grad

    for mode in ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean"):
        yield mode, lambda m, *_, longest, mode=mode: derived(lambda x, masks: algos.agg_loss(x, masks, mode), m)
    yield "seq-mean-token-sum-norm", lambda m, *_, longest: derived(lambda x, masks: algos.agg_loss(x, masks, "seq-mean-token-sum-norm", loss_scale_factor=longest), m)
    (scale,) = bare(PEERS / "skyrl" / "backends" / "skyrl_train" / "utils" / "ppo_utils.py", ["apply_loss_reduction_to_advantages_minibatch"], torch=torch)

    def minibatch(kind, masks, groups, longest):
        bounds = [(groups.index(g), len(groups) - groups[::-1].index(g)) for g in dict.fromkeys(groups)]
        return scale(torch.ones_like(masks), masks, kind, 1, longest, bounds) * masks

    for kind in ("token_mean", "sequence_mean", "seq_mean_token_sum_norm", "prompt_mean"):
        yield "skyrl_" + kind, lambda m, groups, _, longest, kind=kind: minibatch(kind, m, groups, longest)
    areal = trainers.areal_loss(PEERS)
    yield "token-mean", lambda m, *_, longest: areal(m)
    if checkout := os.environ.get("TURNPACK_PRIME_RL"):
        prime = trainers.prime_loss(checkout)
        yield "token-mean", lambda m, *_, longest: torch.stack(prime(list(m)))
    if checkout := os.environ.get("TURNPACK_SLIME"):
        mean = trainers.slime_loss(Path(checkout) / "slime" / "backends" / "megatron_utils" / "cp_utils.py", True)
        yield "slime_rollout_mean", lambda m, _, rollouts, longest: torch.stack(mean(list(m), rollouts))
    if checkout := os.environ.get("TURNPACK_OPENCLAW"):
        sample = trainers.slime_loss(Path(checkout) / "slime" / "slime" / "backends" / "megatron_utils" / "cp_utils.py", False)
        yield "openclaw_sample_mean", lambda m, _, rollouts, longest: torch.stack(sample(list(m), rollouts)) / len(m)
    if checkout := os.environ.get("TURNPACK_TRL"):
        _, reduce = trainers.trl(checkout)
        for kind, ours in (("dapo", "token-mean"), ("bnpo", "token-mean"), ("grpo", "skyrl_sequence_mean"), ("dr_grpo", "skyrl_seq_mean_token_sum_norm"),
                           ("sapo", "skyrl_sequence_mean"), ("cispo", "token-mean"), ("vespo", "token-mean")):
            yield ours, lambda m, *_, longest, kind=kind: reduce(kind, m, longest)
    if checkout := os.environ.get("TURNPACK_NEMO_RL"):
        (masked,) = bare(Path(checkout) / "nemo_rl" / "algorithms" / "utils.py", ["masked_mean"], torch=torch, Optional=None)
        yield "token-mean", lambda m, *_, longest: derived(lambda x, masks: masked(x, masks, global_normalization_factor=masks.sum()), m)


def weighed(lines, all_losses, golden):
    """Rows of steps, several for a rollout: the number of weights compared; golden gets those of rows."""
    compared = 0
    with tempfile.TemporaryDirectory() as tmp:
        (Path(tmp) / "dump.jsonl").write_text("".join(json.dumps(l) + "\n" for l in lines))
        for name, reference in all_losses:
            if not ours(Path(tmp), ["--mode", "perstep", "--weights", name]):
                continue
            rows = pq.read_table(Path(tmp) / "out" / "batch.parquet").to_pylist()
            longest = max(len(r["input_ids"]) for r in rows)
            masks = torch.tensor([r["loss_mask"] + [0] * (longest - len(r["loss_mask"])) for r in rows], dtype=torch.float64)
            got = torch.tensor([r["weights"] + [0.0] * (longest - len(r["weights"])) for r in rows], dtype=torch.float64)
            want = reference(masks, [r["group_id"] for r in rows], [r["rollout_id"] for r in rows], longest=longest)
            assert torch.allclose(got, want * masks, rtol=TOLERANCE, atol=1e-9), (name, got, want)
            compared += int(masks.sum())
            golden[name] = {r["sample_id"]: float(x.max()) for r, x in zip(rows, want * masks)}
    return compared


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
    systems = [*verl_systems(), *skyrl_systems(), *areal_systems()]
    for name, more in (("NEMO_RL", nemo_systems), ("PRIME_RL", prime_systems), ("SLIME", slime_systems), ("TRL", trl_systems)):
        if checkout := os.environ.get("TURNPACK_" + name):
            systems += more(checkout)
    all_losses, tokens, weights = list(losses()), 0, 0
    for _ in range(COUNT):
        made, advantages, of_losses = batch(), {}, {}
        for flags, reference in systems:
            tokens += check(*made, flags, reference, advantages)
        weights += weighed(made[0], all_losses, of_losses)
        if len(sys.argv) > 6:
            with open(sys.argv[6], "a", encoding="utf-8") as f:
                f.write(json.dumps({"dump": made[0], "advantages": advantages, "weights": of_losses}) + "\n")
    print(f"{COUNT} batches through {len(systems)} recipes and estimators, {tokens} trained tokens, and {len(all_losses)} losses, {weights} weights: 0 differ")


main()
