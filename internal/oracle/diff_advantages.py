"""Compares `plumb advantage` and `weights` with verl and AReaL on random batches.

usage: diff_advantages.py PLUMB PEERS CASES_JSONL COUNT [SEED]

PEERS is a folder with the packages verl and areal, whose own functions are run in
float64; CASES_JSONL the advantages kit, which says how a case is written.
"""
import json
import random
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import torch

import peers

PLUMB, PEERS, CASES, COUNT = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else 1
torch.set_default_dtype(torch.float64)
rand = random.Random(SEED)


class Config(dict):
    __getattr__ = dict.get


def rewards(n):
    constant = rand.choice([0.0, 1.0, -1.0, 0.1, 7.7])
    draw = rand.choice([lambda: float(rand.random() < 0.5), lambda: constant, lambda: rand.uniform(-1, 1), lambda: rand.gauss(500, 100),
                        lambda: rand.uniform(-1e-6, 1e-6), lambda: rand.choice([0.0, 0.25, 0.5, 0.75, 1.0])])
    return [draw() for _ in range(n)]


def mask(longest=9):
    m = [int(rand.random() < 0.7) for _ in range(rand.randint(1, longest))]
    return m if any(m) else m[:-1] + [1]


def verl_case(algos, model, name):
    """A case of one verl estimator in the kit's form, and its advantages."""
    groups = []
    for g in range(rand.randint(1, 5)):
        n = rand.randint(2 if name == "verl_grpo_passk" else 1, 9)
        group = {"key": f"g{g}", "rewards": rewards(n)}
        if model["kind"] == "token":
            group["masks"] = [mask() for _ in range(n)]
        if "lengths" in model["groups"][0]:
            group["lengths"] = [rand.randint(1, 12) for _ in range(n)]
        groups.append(group)
    case = {k: model[k] for k in ("estimator", "source", "kind", "params")} | {"groups": groups}
    masks = [m for g in groups for m in g.get("masks") or [[1] * k for k in g.get("lengths", [1] * len(g["rewards"]))]]
    batch, scores = torch.zeros(len(masks), max(map(len, masks))), [v for g in groups for v in g["rewards"]]
    given = torch.zeros_like(batch)
    for row, (m, score) in enumerate(zip(masks, scores)):
        batch[row, : len(m)] = torch.tensor(m, dtype=torch.float64)
        given[row, max(t for t, bit in enumerate(m) if bit)] = score
    index = np.array([g["key"] for g in groups for _ in g["rewards"]], dtype=object)
    if name == "verl_remax":
        case["reward_baselines"] = [rand.random() for _ in scores]
        out, _ = algos.compute_remax_outcome_advantage(given, torch.tensor(case["reward_baselines"]), batch)
    elif name == "verl_reinforce_pp":
        case["gamma"] = rand.choice([1.0, 0.99, 0.9, 0.5])
        out, _ = algos.compute_reinforce_plus_plus_outcome_advantage(given, batch, config=Config(gamma=case["gamma"]))
    elif name == "verl_grpo_passk":
        out, _ = algos.compute_grpo_passk_outcome_advantage(given, batch, index=index, config=Config(norm_adv_by_std_in_grpo=True))
    elif name in ("verl_grpo", "verl_drgrpo"):
        out, _ = algos.compute_grpo_outcome_advantage(given, batch, index=index, norm_adv_by_std_in_grpo=name == "verl_grpo")
    else:
        kind = name.removeprefix("verl_").replace("reinforce_pp", "reinforce_plus_plus")
        out, _ = getattr(algos, f"compute_{kind}_outcome_advantage")(given, batch, index=index)
    if model["kind"] == "token":
        return case, [float(v) * bit for row, m in zip(out, masks) for v, bit in zip(row, m)]
    return case, [float(row[m.index(1)]) for row, m in zip(out, masks)]


def areal_case(normalization, model):
    size = rand.randint(1, 5)
    case = {"estimator": "areal_norm", "source": model["source"], "kind": "scalar", "group_size": size, "mean_level": rand.choice(["batch", "group", None]),
            "std_level": rand.choice(["batch", "group", None]), "mean_leave1out": rand.random() < 0.4, "std_unbiased": rand.random() < 0.5}
    sizes = [size] * rand.randint(1, 4) + ([rand.randint(1, size - 1)] if size > 1 and rand.random() < 0.3 else [])
    case["groups"] = [{"key": f"g{i}", "rewards": rewards(n)} for i, n in enumerate(sizes)]
    case["ragged_tail"] = sizes[-1] != size
    case["params"] = model["params"] | {"ddof": int(case["std_unbiased"]), "eps": 1e-5 if case["std_level"] else 0.0}
    config = types.SimpleNamespace(eps=1e-5, **{k: case[k] for k in ("group_size", "mean_level", "std_level", "mean_leave1out", "std_unbiased")})
    return case, normalization(config)(torch.tensor([v for g in case["groups"] for v in g["rewards"]])).tolist()


def weights_case(algos):
    mode = rand.choice(["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean"])
    width = rand.randint(1, 9)
    masks = [[int(rand.random() < 0.6) for _ in range(width)] for _ in range(rand.randint(1, 6))]
    masks[-1][0] = 1
    extra = {}
    if mode.startswith("seq") and rand.random() < 0.4:
        extra["global_batch_size"] = rand.randint(1, 9)
    if mode.endswith("norm") and rand.random() < 0.5:
        extra["loss_scale_factor"] = rand.randint(1, 99)
    losses = torch.rand(len(masks), width, requires_grad=True)
    algos.agg_loss(losses, torch.tensor(masks).double(), mode, **extra).backward()
    return {"mode": mode, "source": "verl", "masks": masks} | extra, losses.grad.flatten().tolist()


def flat(x):
    return [v for y in x for v in flat(y)] if isinstance(x, list) else [x]


def compare(verb, field, cases):
    text = "".join(json.dumps({"id": str(i)} | case) + "\n" for i, (case, _) in enumerate(cases))
    answers = subprocess.run([PLUMB, verb], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answers) == len(cases), f"{len(cases)} lines in, {len(answers)} out"
    bad = 0
    for (case, want), answer in zip(cases, answers):
        got = flat(json.loads(answer)[field])
        if len(got) != len(want) or any(g is None or abs(g - w) > 1e-7 * max(1, abs(w)) for g, w in zip(got, want)):
            bad += 1
            if bad <= 3:
                print(json.dumps(case), "\n want", want, "\n got ", got)
    return bad


def main():
    models = {}
    for line in open(CASES, encoding="utf-8"):
        case = json.loads(line)
        models.setdefault(case["estimator"], case)
    algos = peers.verl_algorithms(PEERS)
    offline = types.SimpleNamespace(is_initialized=lambda: False)
    normalization = peers.module("areal_data", PEERS / "areal" / "utils" / "data.py", lambda n: n == "Normalization", torch=torch, np=np, dist=offline).Normalization
    torch.Tensor.float = torch.Tensor.double  # its last step
    verl = [n for n in models if n.startswith("verl_")]
    cases = []
    while len(cases) < COUNT:
        name = rand.choice(verl)
        try:
            cases.append(verl_case(algos, models[name], name))
        except ValueError:  # verl refuses to whiten a batch of one token
            continue
    bad = compare("advantage", "expected", cases)
    bad += compare("advantage", "expected", [areal_case(normalization, models["areal_norm"]) for _ in range(COUNT)])
    bad += compare("weights", "weights", [weights_case(algos) for _ in range(COUNT)])
    print(f"{3 * COUNT} batches, {len(verl)} estimators of verl, AReaL's normalisation, verl's loss weights, seed {SEED}, {bad} differ")
    sys.exit(bad > 0)


main()
