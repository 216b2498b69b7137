"""Compares `plumb advantage` with the rules of the advantages kit on random groups.

usage: diff_estimators.py PLUMB CASES_JSONL COUNT [SEED]

These are the estimators of slime, OpenClaw-RL, SkyRL, prime-rl, NeMo RL and TRL whose
rule is a line of arithmetic (diff_advantages.py runs verl's and AReaL's own functions).
CASES_JSONL, the advantages kit, says how a case is written.
"""
import json
import random
import statistics
import sys

from plumbing import compare, report

PLUMB, CASES, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
rand = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)


def spread(values, eps, deviation=statistics.stdev):
    return (deviation(values) if len(values) > 1 else 0.0) + eps


def centred(rewards, scale=1.0):
    mean = statistics.fmean(rewards)
    return [(r - mean) / scale for r in rewards]


def left_out(rewards):
    total = sum(rewards)
    return [r - (total - r) / (len(rewards) - 1) for r in rewards] if len(rewards) > 1 else [0.0]


def by_mean(rewards, eps):
    mean = statistics.fmean(rewards)
    return centred(rewards, mean + eps)


# Advantages of one group.
GROUPS = {
    "slime_grpo": lambda g: centred(g, spread(g, 1e-6)) if len(g) > 1 else [None],
    "slime_grpo_nostd": centred,
    "openclaw_grpo": lambda g: centred(g, spread(g, 1e-6)),
    "openclaw_grpo_nostd": centred,
    "prime_grpo": centred,
    "prime_max_rl": lambda g: by_mean(g, 0.0) if statistics.fmean(g) > 0 else [0.0] * len(g),
    "skyrl_grpo": lambda g: centred(g, spread(g, 1e-6)) if len(g) > 1 else [g[0] / (1 + 1e-6)],
    "skyrl_drgrpo": lambda g: centred(g) if len(g) > 1 else g,
    "skyrl_rloo": left_out,
    "skyrl_maxrl": lambda g: by_mean(g, 1e-6) if len(g) > 1 else g,
    "nemo_grpo_loo_nostd": left_out,
}
# Advantages of one group's scorable rewards, given those of the batch.
SCORABLE = {
    "trl_grpo_group": lambda g, batch: centred(g, spread(g, 1e-4)),
    "trl_grpo_batch": lambda g, batch: centred(g, spread(batch, 1e-4)),
    "trl_grpo_none": lambda g, batch: centred(g),
    "trl_async_grpo": lambda g, batch: centred(g, spread(g, 1e-8, statistics.pstdev)),
    "trl_rloo": lambda g, batch: left_out(g),
    "trl_rloo_batchnorm": lambda g, batch: left_out(g),
}


def scorable(name, groups):
    """Rewards that are null get 0 and belong to no statistic."""
    given = [[r for r in g if r is not None] for g in groups]
    batch = [r for g in given for r in g]
    values = [SCORABLE[name](g, batch) if g else [] for g in given]
    if name == "trl_rloo_batchnorm":
        # The baseline of a single reward is 0/0, so the batch does not count it.
        counted = [a for g in values if len(g) > 1 for a in g]
        values = [[(a - statistics.fmean(counted)) / spread(counted, 1e-4) for a in g] if len(g) > 1 else g for g in values]
    return [[0.0 if r is None else a.pop(0) for r in g] for g, a in zip(groups, values)]


def rewards(n):
    constant = rand.choice([0.0, 1.0, 0.5, -1.0])
    draw = rand.choice([lambda: float(rand.random() < 0.5), lambda: constant, lambda: rand.uniform(-1, 1), lambda: rand.gauss(500, 100)])
    return [draw() for _ in range(n)]


def estimator_case(models):
    name = rand.choice([*GROUPS, *SCORABLE])
    case = {k: models[name][k] for k in ("estimator", "source", "kind", "params")}
    size, positional = rand.randint(2, 9), "n_samples_per_prompt" in models[name]
    groups = [rewards(size if positional else rand.randint(1, 9)) for _ in range(rand.randint(1, 5))]
    if positional:
        case["n_samples_per_prompt"] = size
    if name in SCORABLE and rand.random() < 0.4:
        groups = [[None if rand.random() < 0.25 else r for r in g] for g in groups]
    if "row_order" in models[name]:
        rows = sum(map(len, groups))
        case["row_order"] = rand.sample(range(rows), rows)
    case["groups"] = [{"key": f"g{i}", "family": "random", "rewards": g} for i, g in enumerate(groups)]
    return case, {"expected": scorable(name, groups) if name in SCORABLE else list(map(GROUPS[name], groups))}


def main():
    models = {}
    with open(CASES, encoding="utf-8") as f:
        for case in map(json.loads, f):
            models.setdefault(case["estimator"], case)
    pairs = [estimator_case(models) for _ in range(COUNT)]
    report(COUNT, compare(PLUMB, "advantage", pairs, 1e-8))


main()
