"""Puts batches through the recipes of OpenClaw-RL and through its own functions.

usage: diff_openclaw.py TURNPACK CHECKOUT MODEL COUNT [SEED [GOLDEN]]

CHECKOUT is Gen-Verse/OpenClaw-RL at 0d034dd, MODEL the folder of examples/tutorial. Each
of COUNT random batches has several groups, with token ids, outcomes and scores of steps.
Three ways must give each trained token the same advantage: the rows of --recipe swe-rl
and swe-rl-prm; the functions of slime/ray/rollout.py and backends/megatron_utils/loss.py
on samples made of the dump by the words of generate_with_swe_remote.py; and the same
functions on the .pt files of the same recipes, with one row a step and with merged rows.
GOLDEN is a file for the batches with the advantage of each step that trains
(recipe/testdata/openclaw.jsonl).
"""
import ast
import json
import logging
import random
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import pyarrow.parquet as pq
import torch

TURNPACK, CHECKOUT, MODEL, COUNT = sys.argv[1], Path(sys.argv[2]) / "slime" / "slime", sys.argv[3], int(sys.argv[4])
rand = random.Random(int(sys.argv[5]) if len(sys.argv) > 5 else 1)
TOLERANCE = 1e-6


def functions(path, wanted, **names):
    """Functions and methods of a file by their names, without the rest of it."""
    tree = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in wanted]
    assert len(found) == len(wanted), (path, wanted)
    exec(compile("from __future__ import annotations\n" + ast.unparse(ast.Module(found, [])), path, "exec"), names)
    return [names[w] for w in wanted]


sample_types = {"__name__": "types"}
sys.modules["types_of_slime"] = types.ModuleType("types_of_slime")
exec(compile((CHECKOUT / "utils" / "types.py").read_text(encoding="utf-8"), "types.py", "exec"), sys.modules["types_of_slime"].__dict__)
Sample = sys.modules["types_of_slime"].Sample
logging.disable(logging.WARNING)
convert, drop, rewards, step_wise = functions(
    "ray/rollout.py", ["_convert_samples_to_train_data", "_drop_constant_reward_groups", "_post_process_rewards", "_post_process_step_wise_rewards"],
    torch=torch, logger=logging.getLogger(), Sample=Sample)
(advantages,) = functions(
    "backends/megatron_utils/loss.py", ["compute_advantages_and_returns"], torch=types.SimpleNamespace(
        **{n: getattr(torch, n) for n in ("tensor", "zeros", "zeros_like", "float32", "cat", "Tensor")}, cuda=types.SimpleNamespace(current_device=lambda: "cpu")),
    mpu=types.SimpleNamespace(is_pipeline_last_stage=lambda: True), slice_log_prob_with_cp=lambda x, *_: x,
    get_grpo_returns=lambda r, kl: [torch.ones_like(k) * r[i] for i, k in enumerate(kl)])


def reference(samples, estimator):
    """The advantage of each trained token by the place of its sample and of itself in the response."""
    args = types.SimpleNamespace(advantage_estimator=estimator, rewards_normalization=True, grpo_std_normalization=True, dynamic_history=True, reward_key="",
                                 kl_coef=0, use_rollout_logprobs=False, qkv_format="thd", normalize_advantages=False)
    manager = types.SimpleNamespace(args=args, custom_convert_samples_to_train_data_func=None, custom_reward_post_process_func=None)
    for name, f in (("_drop_constant_reward_groups", drop), ("_post_process_rewards", rewards), ("_post_process_step_wise_rewards", step_wise)):
        setattr(manager, name, types.MethodType(f, manager))
    for place, s in enumerate(samples):
        s.place = place
    kept = drop(manager, samples)
    data = convert(manager, samples)
    data["loss_masks"] = [torch.tensor(m) for m in data["loss_masks"]]
    data["total_lengths"] = [len(t) for t in data["tokens"]]
    data["log_probs"] = [torch.zeros(n) for n in data["response_lengths"]]
    advantages(args, data)
    out = {}
    for s, mask, values in zip(kept, data["loss_masks"], data["advantages"]):
        out[s.place] = {t: float(v) for t, (m, v) in enumerate(zip(mask, values)) if m}
    return out


def ids(least, most):
    return [rand.randrange(4000) for _ in range(rand.randint(least, most))]


def batch(judged):
    """Lines of a dump, and the samples that generate_with_swe_remote.py makes of its rollouts: one a step."""
    lines, samples = [], []
    for g in range(rand.randint(1, 6)):
        prompt, alike = ids(2, 5), rand.random() < 0.3
        for i in range(rand.randint(1, 5)):
            resolved = alike or rand.random() < 0.5
            outcome, context, turns, scores = 1.0 if resolved else -1.0, list(prompt), [], []
            for step in range(rand.randint(1, 5)):
                reply = ids(1, 6) + [4089]
                turns.append({"prompt_ids": list(context), "output_ids": reply, "logprobs": [-0.5] * len(reply), "version": 0, "finish_reason": "stop", "step": step})
                skipped = rand.random() < 0.15
                score = 0.0 if skipped else 1.0 if alike else rand.choice([-1.0, -1 / 3, 1 / 3, 1.0])
                scores.append({"step": step, "reason": "skipped: submit step"} if skipped else {"step": step, "score": score})
                meta = {"step_wise": {"step_scores": [score], "step_indices": [step], "step_token_spans": [[0, len(reply)]],
                                      "step_scores_with_outcome": [score + outcome], "outcome_reward": outcome}} if judged else {}
                samples.append((f"g{g}/{i}", step, Sample(group_index=g, index=len(lines), tokens=context + reply, response_length=len(reply), loss_mask=[1] * len(reply),
                                                          reward=outcome, metadata=meta, status=Sample.Status.COMPLETED)))
                context = context + reply + ids(1, 4)
            lines.append({"turnpack_version": 1, "id": f"g{g}/{i}", "group": f"g{g}", "index": i, "messages": [{"role": "user", "content": "x"}], "turns": turns,
                          "outcome": {"resolved": resolved}, "status": "completed", **({"steps": scores} if judged else {})})
    return lines, samples


def ours(tmp, name, *flags):
    """Files of a conversion, [] where it has no row: then no group has rewards that differ."""
    out = Path(tmp) / name
    p = subprocess.run([TURNPACK, "convert", "--model", MODEL, "--in", Path(tmp) / "dump.jsonl", "--out", out, "--window", "none", "--quiet", "--force", *flags], capture_output=True, text=True)
    if p.returncode and "no reward to train on" not in p.stderr and "no row" not in p.stderr and "no rollout gave a row" not in p.stderr:
        raise SystemExit(p.stderr)
    return [] if p.returncode else sorted(out.rglob("*.p*"))


def close(want, got):
    return want.keys() == got.keys() and all(abs(want[k] - got[k]) <= TOLERANCE * max(1, abs(want[k])) for k in want)


def of_rows(files):
    """Advantages by rollout and place in the order that its tokens were sampled, and by row."""
    out = []
    for row in (r for f in files if f.suffix == ".parquet" for r in pq.read_table(f).to_pylist()):
        trained = [t for t, m in enumerate(row["loss_mask"]) if m]
        values = row["advantages"] or [row["advantage"]] * len(row["loss_mask"])
        out.append((row["rollout_id"], row["step_first"], {t - row["prompt_len"]: values[t] for t in trained}))
    return out


def check(lines, samples, recipe, estimator, golden):
    """The number of trained tokens compared."""
    with tempfile.TemporaryDirectory() as tmp:
        (Path(tmp) / "dump.jsonl").write_text("".join(json.dumps(l) + "\n" for l in lines))
        want = reference([s for _, _, s in samples], estimator)
        by_step = {(rollout, step): want[i] for i, (rollout, step, _) in enumerate(samples) if want.get(i)}
        steps = {}
        for (rollout, step), values in by_step.items():
            steps.setdefault(rollout, {})[str(step)] = values[0]
        golden.append({"recipe": recipe.split("@")[0], "dump": lines, "steps": steps})
        rows = of_rows(ours(tmp, "rows", "--recipe", recipe))
        got = {(rollout, step): values for rollout, step, values in rows}
        # The reference keeps a batch of equal rewards as one group of advantages 0.
        same = close({k: v[0] for k, v in by_step.items()}, {k: v[0] for k, v in got.items()}) and all(close(by_step[k], got[k]) for k in got)
        assert same, (recipe, {k: (by_step.get(k), got.get(k)) for k in by_step.keys() | got.keys() if by_step.get(k) != got.get(k)})
        tokens = sum(map(len, got.values()))
        for mode in ("perstep", "merged") if got else ():
            flags = ("--recipe", recipe, "--mode", mode, "--target", "openclaw")
            files = [f for f in ours(tmp, mode + "-pt", *flags, "--pt") if f.suffix == ".pt"]
            loaded = [Sample.from_dict(s) for f in files for s in torch.load(f, weights_only=False)["samples"]]
            made = reference(loaded, estimator)
            rows = of_rows(ours(tmp, mode, *flags))
            assert len(rows) == len(loaded), (mode, len(rows), len(loaded))
            for i, (rollout, step, values) in enumerate(rows):
                assert close(values, made[i]), (recipe, mode, rollout, step, values, made[i])
    return tokens


def main():
    tokens, golden = 0, []
    for _ in range(COUNT):
        tokens += check(*batch(True), "swe-rl-prm@0d034dd", "step_wise", golden)
        tokens += check(*batch(False), "swe-rl@0d034dd", "grpo", golden)
    if len(sys.argv) > 6:
        with open(sys.argv[6], "a", encoding="utf-8") as f:
            f.writelines(json.dumps(g) + "\n" for g in golden)
    print(f"{2 * COUNT} batches, {tokens} trained tokens: 0 differ")


main()
