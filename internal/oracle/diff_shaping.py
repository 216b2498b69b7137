"""Compares `plumb shape` and `filter` with the rules of the shaping kit on random batches.

usage: diff_shaping.py PLUMB COUNT [SEED]

The rules are those of the kit's README; deviations are PyTorch's and NumPy's, since
constant rewards pass the filters of some systems through their rounding.
"""
import math
import random
import sys
import warnings

import numpy as np
import torch

from plumbing import compare, report

PLUMB, COUNT = sys.argv[1], int(sys.argv[2])
rand = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
warnings.filterwarnings("ignore")  # deviations of one sample


def length_case():
    longest = rand.choice([1, 2, 100, 1000, 16384])
    cache, penalty = max(1, rand.choice([1, longest // 4, longest // 2, longest])), rand.choice([0.0, 0.5, 1.0, 2.5])
    free = longest - cache
    lengths = [rand.choice([0, 1, free, free + 1, max(0, free - 1), longest, longest + 1, 2 * longest, rand.randint(0, 2 * longest)]) for _ in range(rand.randint(0, 9))]
    base = [rand.choice([-1.0, 0.0, 0.5, 1.0, rand.uniform(-2, 2)]) for _ in lengths]
    shaped = [b + min((free - n) / cache * penalty, 0.0) for n, b in zip(lengths, base)]
    return ({"max_len": longest, "cache": cache, "penalty": penalty, "lengths": lengths, "base_rewards": base},
            {"trl_punishment": [min(0.0, max(-1.0, (free - n) / cache)) for n in lengths], "verl_reward": shaped, "nemo_reward": shaped})


def stop_properly_case():
    rewards, coef = [rand.uniform(-1, 1) for _ in range(rand.randint(0, 6))], rand.choice([0.0, 0.25, 1.0, 1.5])
    cut = [rand.random() < 0.5 for _ in rewards]
    return {"rule": "nemo_stop_properly", "rewards": rewards, "truncated": cut, "coef": coef}, {"expected": [r * coef if c else r for r, c in zip(rewards, cut)]}


def stop_reason_case():
    reasons = [rand.choice(["stop", "stop", "complete", "tool_calls", None, "STOP", "length", "stop ", ""]) for _ in range(rand.randint(1, 6))]
    masks = [[int(rand.random() < 0.7) for _ in range(rand.randint(0, 5))] for _ in reasons]
    per_token = rand.random() < 0.4
    rewards = [[rand.uniform(-1, 1) for _ in m] if per_token else rand.uniform(-1, 1) for m in masks]
    kept = [r == "stop" for r in reasons]
    return ({"rule": "skyrl_stop_reason", "rewards": rewards, "stop_reasons": reasons, "masks": masks},
            {"masks": [m if k else [0] * len(m) for m, k in zip(masks, kept)], "rewards": [r if k else [0.0] * len(r) if per_token else 0.0 for r, k in zip(rewards, kept)]})


def repetition_case():
    n, penalty = rand.randint(1, 6), rand.choice([-1.0, -0.5, 0.0])
    rows = [[rand.randint(1, rand.choice([1, 2, 4, 50])) for _ in range(rand.randint(0, 14))] for _ in range(rand.randint(0, 6))]

    def repeated(ids):
        grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
        return (1 - len(set(grams)) / len(grams)) * penalty if grams else 0.0

    return {"rule": "trl_repetition_penalty", "ngram": n, "max_penalty": penalty, "completion_ids": rows}, {"expected": [repeated(ids) for ids in rows]}


def override_case():
    invalid, malformed = rand.choice([None, 0.0, -5.0, 200.0]), rand.choice([None, 0.0, -2.5, -150.0])
    low, high = rand.choice([(-100.0, 100.0), (-1.0, 1.0), (0.0, 0.0), (-3.0, 0.5)])
    advantages = [rand.choice([-180.0, 250.0, rand.uniform(-2, 2)]) for _ in range(rand.randint(0, 4))]
    rows = [[{"role": rand.choice(["user", "assistant", "assistant", "tool"]), "tokens": rand.randint(0, 4), "sampled": rand.random() < 0.6,
              "invalid_tool_call": rand.random() < 0.4, "malformed_thinking": rand.random() < 0.4} for _ in range(rand.randint(0, 6))] for _ in advantages]

    def value(advantage, m):
        ours = m["role"] == "assistant" and m["sampled"]
        if ours and m["invalid_tool_call"] and invalid is not None:
            advantage = invalid
        elif ours and m["malformed_thinking"] and malformed is not None:
            advantage = malformed
        return max(low, min(high, advantage))

    return ({"invalid_tool_call_advantage": invalid, "malformed_thinking_advantage": malformed, "clip_low": low, "clip_high": high, "advantages": advantages, "rows": rows},
            {"expected": [[value(a, m) for m in row for _ in range(m["tokens"])] for a, row in zip(advantages, rows)]})


def off_policy_case():
    sizes = [rand.randint(1, 6) for _ in range(rand.randint(1, 5))]
    masks = [[int(rand.random() < rand.choice([0.7, 0.7, 1.0, 0.0])) for _ in range(n)] for n in sizes]
    train = [[rand.choice([-0.1, -2.5, -30.0, 0.0, 0.04, -rand.random() * 3, -rand.random() * 3]) for _ in range(n)] for n in sizes]
    rollout = [[rand.choice([t, t, t + rand.gauss(0, 0.05), t + rand.gauss(0, 1), -30.0, 0.0, t + 21]) for t in row] for row in train]
    drift = [[t - r for t, r in zip(*rows)] for rows in zip(train, rollout)]

    def on(row, mask, f=lambda d: d):
        return [f(d) for d, m in zip(row, mask) if m]

    def each(f, values=drift):
        return [[f(d, m) for d, m in zip(row, mask)] for row, mask in zip(values, masks)]

    def rows_of(f):
        """One number per row, put on its masked tokens."""
        return [[value * m for m in mask] for value, mask in zip((f(row, mask) for row, mask in zip(drift, masks)), masks)]

    def bounded(d):
        return max(-20.0, min(20.0, d))

    def normed(weights, values, epsilon):
        mean = sum(values) / (len(values) + epsilon) if values else 0
        return [[w / mean for w in row] for row in weights] if mean > 1e-8 else weights

    k1, k2, k3 = (lambda d: -bounded(d)), (lambda d: 0.5 * bounded(d) ** 2), (lambda d: math.exp(bounded(d)) - 1 - bounded(d))

    def mean(row, mask, k):
        return sum(on(row, mask, k)) / (sum(mask) + 1e-8)

    def near(value, low, high):
        return int(math.log(low) <= value <= math.log(high))

    def zeroed(w, low, high):
        return w if low <= w <= high else 0.0

    def product(row, mask):
        return math.exp(sum(on(row, mask)))

    def sequence(row, mask):
        return math.exp(bounded(sum(on(row, mask))))

    token_k1 = each(lambda d, m: m * near(k1(d), 0.5, 2))
    want = {
        "verl_is_token_2.0": each(lambda d, m: m * min(math.exp(bounded(d)), 2.0)), "verl_is_token_0.5_5.0": each(lambda d, m: m * zeroed(math.exp(bounded(d)), 0.5, 5)),
        "verl_is_sequence_2.0": rows_of(lambda r, k: min(sequence(r, k), 2.0)), "verl_is_sequence_0.5_5.0": rows_of(lambda r, k: zeroed(sequence(r, k), 0.5, 5)),
        "trl_token_mask_None_3.0": each(lambda d, m: zeroed(math.exp(d * m), 0, 3)), "trl_token_truncate_None_3.0": each(lambda d, m: min(math.exp(d * m), 3.0)),
        "trl_sequence_mask_None_3.0": [[zeroed(product(r, k), 0, 3)] * len(r) for r, k in zip(drift, masks)],
        "trl_sequence_truncate_0.5_3.0": [[max(0.5, min(product(r, k), 3.0))] * len(r) for r, k in zip(drift, masks)],
        "slime_tis_0_2": each(lambda d, m: min(math.exp(d), 2.0)), "slime_icepop_0.5_5": each(lambda d, m: zeroed(math.exp(d), 0.5, 5)),
        "verl_rs_token_k1_0.5_2.0": token_k1, "verl_rs_token_k2_0.1": each(lambda d, m: m * int(k2(d) <= 0.1)), "verl_rs_token_k3_0.1": each(lambda d, m: m * int(k3(d) <= 0.1)),
        "verl_rs_seq_sum_k1_0.5_2.0": rows_of(lambda r, k: near(sum(on(r, k, k1)), 0.5, 2)), "verl_rs_seq_mean_k1_0.99_1.01": rows_of(lambda r, k: near(mean(r, k, k1), 0.99, 1.01)),
        "verl_rs_seq_mean_k3_0.05": rows_of(lambda r, k: int(mean(r, k, k3) <= 0.05)), "verl_rs_seq_max_k2_0.5": rows_of(lambda r, k: int(max(on(r, k, k2), default=0) <= 0.5)),
        "verl_rs_token_k1,seq_mean_k3_0.5_2.0,0.2": [[a * b for a, b in zip(*rows)] for rows in zip(token_k1, rows_of(lambda r, k: int(mean(r, k, k3) <= 0.2)))],
    }
    want["verl_is_token_2.0_batchnorm"] = normed(want["verl_is_token_2.0"], [w for row, mask in zip(want["verl_is_token_2.0"], masks) for w in on(row, mask)], 1e-8)
    want["verl_is_sequence_2.0_batchnorm"] = normed(want["verl_is_sequence_2.0"], [sum(row) / (sum(mask) + 1e-8) for row, mask in zip(want["verl_is_sequence_2.0"], masks) if any(mask)], 0)
    return {"masks": masks, "train_logprobs": train, "rollout_logprobs": rollout}, want


def group():
    n, constant = rand.randint(1, rand.choice([1, 3, 8, 24])), rand.choice([0.7, 0.1, 1 / 3, 0.5, 1.0, 0.0, -0.3, 1e-8, 1e8, 7.7])
    rewards = rand.choice([lambda: [constant] * n, lambda: [constant] * (n - 1) + [constant + rand.choice([1e-7, 1e-6, 2e-6, 1e-12, 1e-13, 1.0])],
                           lambda: [0.5 + rand.randint(0, 3) * 2**-24 for _ in range(n)], lambda: [float(rand.random() < 0.5) for _ in range(n)], lambda: [rand.uniform(-1, 1) for _ in range(n)]])()
    rand.shuffle(rewards)
    return rewards


def filter_case():
    groups = [group() for _ in range(rand.randint(1, 7))]
    live = [[rand.random() < 0.8 for _ in g] for g in groups]

    def spread(rewards, tolerance):
        return len(rewards) <= 1 or max(rewards) - min(rewards) > tolerance

    varied = [max(g) - min(g) > 1e-12 for g in groups]
    return {"groups": groups, "live": live}, {
        "slime_keep": [bool(torch.tensor(g, dtype=torch.float64).std() > 1e-6) for g in groups], "openclaw_keep": [bool(torch.tensor(g, dtype=torch.float32).std() > 0) for g in groups],
        "verl_keep": [bool(np.std(g) > 0) or len(g) == 1 for g in groups], "skyrl_keep_tol0": [spread(g, 0) for g in groups], "skyrl_keep_tol1e-6": [spread(g, 1e-6) for g in groups],
        "skyrl_keep_live_tol1e-6": [spread([r for r, l in zip(g, k) if l], 1e-6) for g, k in zip(groups, live)],
        "openclaw_drop_constant_keep": varied if any(varied) else [True] + varied[1:]}


def main():
    shapes = [make() for make in (length_case, stop_properly_case, stop_reason_case, repetition_case, override_case, off_policy_case) for _ in range(COUNT)]
    filters = [filter_case() for _ in range(COUNT)]
    report(len(shapes) + len(filters), compare(PLUMB, "shape", shapes) + compare(PLUMB, "filter", filters))


main()
