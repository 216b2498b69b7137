"""Puts batches of the pivot stage and of self-play through their recipes.

usage: diff_stages.py TURNPACK MODEL COUNT [SEED [GOLDEN]]

Single steps: rows of NeMo-Gym with answers go through `turnpack pivot score` and `turnpack
convert --recipe nemotron-pivot`. Rewards, messages at fault, advantages and their
penalties must be those of the checkouts' own functions: TURNPACK_NEMO_GYM (NVIDIA-NeMo/Gym
at 07d6b0d0) and TURNPACK_NEMO_RL (NVIDIA-NeMo/RL at 7ea279ab); left out where one is not
named. Self-play: no code of the paper is public, so rewards are computed here in fractions
from its equation 1 and advantages from the means of each role; TURNPACK_PRIME_RL
(PrimeIntellect-ai/prime-rl at 559b4477), whose estimator the recipe takes, is asked as
well. GOLDEN is a file for the batches with what was made of them
(recipe/testdata/stages.jsonl).
"""
import asyncio
import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import types
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq

TURNPACK, MODEL, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
rand = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
TOLERANCE = 1e-6
ALPHA = Fraction("0.8")


def turnpack(*args):
    p = subprocess.run([TURNPACK, *map(str, args)], capture_output=True, text=True)
    if p.returncode and "no rollout gave a row" not in p.stderr and "no reward to train on" not in p.stderr:
        raise SystemExit(f"{args}: {p.stderr}")
    return p.returncode == 0


def converted(lines, recipe, *flags):
    """The rows of a dump by rollout: advantages of the trained tokens, which must be those after the prompt."""
    with tempfile.TemporaryDirectory() as tmp:
        (Path(tmp) / "dump.jsonl").write_text("".join(json.dumps(l) + "\n" for l in lines))
        if not turnpack("convert", "--model", MODEL, "--in", Path(tmp) / "dump.jsonl", "--out", Path(tmp) / "out", "--quiet", "--recipe", recipe, *flags):
            return {}
        out = {}
        for r in pq.read_table(Path(tmp) / "out" / "batch.parquet").to_pylist():
            assert r["loss_mask"] == [0] * r["prompt_len"] + [1] * (len(r["loss_mask"]) - r["prompt_len"]), r["rollout_id"]
            values = r["advantages"] or [r["advantage"]] * len(r["loss_mask"])
            out[r["rollout_id"]] = values[r["prompt_len"]:]
        return out


def same(want, got):
    assert want.keys() == got.keys(), want.keys() ^ got.keys()
    for key, values in want.items():
        assert len(values) == len(got[key]) and all(abs(a - b) <= TOLERANCE * max(1, abs(a)) for a, b in zip(values, got[key])), (key, values, got[key])
    return sum(map(len, want.values()))


# ---- single steps
TEXTS = ["I shall look.", "done <tool_call>{}</tool_call>", "I thought </think> so", "<think>hm</think> ls", "see <function_call>", ""]
ARGUMENTS = [{"path": "/a/b.py"}, {"path": "/a/c.py"}, {"command": "ls -la src", "n": 2}, {"command": "ls src", "n": 2.0}, {}]


def call(name, arguments):
    return {"type": "function_call", "call_id": "c", "name": name, "arguments": json.dumps(arguments)}


def said(text):
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}


def pivot_batch():
    """Rows of NeMo-Gym with answers; each answer's last item has the tokens, as its model server writes them."""
    rows = []
    for task in range(rand.randint(2, 4)):
        want = call(rand.choice(["bash", "view"]), rand.choice(ARGUMENTS))
        prompt = [rand.randrange(4000) for _ in range(rand.randint(2, 5))]
        for i in range(rand.randint(2, 5)):
            kind = rand.random()
            if kind < 0.45:
                output = [call(want["name"], json.loads(want["arguments"]))]
            elif kind < 0.7:
                output = [call(rand.choice(["bash", "view"]), rand.choice(ARGUMENTS))]
            else:
                output = [said(rand.choice(TEXTS))]
            # NeMo Gym's server writes an empty message only where the reply has nothing else.
            if rand.random() < 0.3 and output[0].get("content", [{}])[0].get("text") != "":
                output.insert(0, {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": rand.choice(["hm", "<think> <think> again"])}]})
            ids = [rand.randrange(4000) for _ in range(rand.randint(1, 5))] + [4089]
            output[-1] |= {"prompt_token_ids": prompt, "generation_token_ids": ids, "generation_log_probs": [-0.5] * len(ids)}
            cut = rand.random() < 0.15
            rows.append({"_ng_task_index": task, "_ng_rollout_index": i, "responses_create_params": {"input": [{"role": "user", "content": f"task {task}"}]},
                         "expected_action": {k: want[k] for k in ("type", "name", "arguments")},
                         "response": {"output": output, "status": "incomplete" if cut else "completed", **({"incomplete_details": {"reason": "max_output_tokens"}} if cut else {})}})
    return rows


def pivot_reference(gym, nemo):
    """f(rows) = rewards and, by rollout that trains, advantages of tokens."""
    import torch

    from trainers import Config, bare

    torch.set_default_dtype(torch.float64)
    sys.path.insert(0, str(gym))
    for name in ("nemo_gym", "nemo_gym.openai_utils"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["nemo_gym.openai_utils"].NeMoGymResponse = object
    folder = "resources_servers.single_step_tool_use_with_argument_comparison.common."
    verification = __import__(folder + "verification_utils", fromlist=["x"])
    extract = __import__(folder + "response_utils", fromlist=["x"]).extract_action
    # word_count_similarity_threshold of swe_pivot_single_step_tool_use_with_argument_comparison.yaml
    comparator = verification.ActionComparator(config=verification.ToolCallComparatorConfig(word_count_similarity_threshold=0.0))
    algorithms = Path(nemo) / "nemo_rl" / "algorithms"
    baseline, mean, var = bare(algorithms / "utils.py", ["calculate_baseline_and_std_per_prompt", "masked_mean", "masked_var"], torch=torch, Optional=None)
    (make,) = bare(algorithms / "advantage_estimator.py", ["GRPOAdvantageEstimator"], torch=torch, calculate_baseline_and_std_per_prompt=baseline, masked_mean=mean, masked_var=var, calculate_kl=None)
    penalise, clip = bare(algorithms / "grpo.py", ["_apply_message_level_advantage_penalties", "_clip_grpo_advantages"], torch=torch, cast=cast)
    (faults,) = bare(Path(nemo) / "nemo_rl" / "environments" / "nemo_gym.py", ["_detect_invalid_tool_call_and_malformed_thinking"])
    settings = Config(normalize_rewards=True, use_leave_one_out_baseline=True, minus_baseline=True, advantage_clip_low=-100.0, advantage_clip_high=100.0)

    def reward(row):
        items = [types.SimpleNamespace(**{**o, "content": [types.SimpleNamespace(**c) for c in o.get("content", [])]}) for o in row["response"]["output"]]
        actual = extract(types.SimpleNamespace(output=items))
        if actual is None:
            return 0.0
        return comparator.compare_action(verification.FunctionCallAction(**row["expected_action"]), actual).reward

    def reference(rows):
        rewards = [reward(r) for r in rows]
        last = [r["response"]["output"][-1] for r in rows]
        width = max(len(o["generation_token_ids"]) for o in last)
        masks = torch.tensor([[1.0] * len(o["generation_token_ids"]) + [0.0] * (width - len(o["generation_token_ids"])) for o in last])
        given = torch.tensor(rewards)
        values = make(settings, Config(use_kl_in_reward=False, reference_policy_kl_penalty=0.0)).compute_advantage(
            prompt_ids=torch.tensor([[r["_ng_task_index"]] for r in rows]), rewards=given, mask=masks, repeated_batch={"total_reward": given}, logprobs_policy=None, logprobs_reference=None)
        batch, logs = {"advantages": values}, []
        for o in last:
            invalid, malformed = faults(o, ["<tool_call>", "</tool_call>", "<function_call>", "</function_call>"], ["<think>", "</think>"])
            logs.append([{"role": "assistant", "token_ids": o["generation_token_ids"], "generation_logprobs": True, "is_invalid_tool_call": invalid, "has_malformed_thinking": malformed}])
        with contextlib.redirect_stdout(io.StringIO()):
            penalise(batch, logs, -5.0, -5.0)
        values = clip(batch["advantages"], settings)
        return rewards, {f"task-{r['_ng_task_index']}/rollout-{r['_ng_rollout_index']}": [float(x) for x in values[k][: len(o["generation_token_ids"])]]
                         for k, (r, o) in enumerate(zip(rows, last)) if r["response"]["status"] == "completed"}

    return reference


def check_pivot(reference, golden):
    rows = pivot_batch()
    rewards, want = reference(rows)
    with tempfile.TemporaryDirectory() as tmp:
        path, scored = Path(tmp) / "rows.jsonl", Path(tmp) / "scored.jsonl"
        path.write_text("".join(json.dumps(r) + "\n" for r in rows))
        assert turnpack("pivot", "score", path, "--out", scored)
        lines = [json.loads(l) for l in scored.read_text().splitlines()]
    assert [l["reward"] for l in lines] == rewards, (rewards, [l["reward"] for l in lines])
    golden.append({"recipe": "nemotron-pivot", "dump": rows, "rewards": rewards, "advantages": want})
    return same(want, converted(lines, "nemotron-pivot"))


# ---- self-play
def injector(solved, live):
    """Equation 1 of arXiv:2512.18552v3 for a bug that passed the checks."""
    return -ALPHA if solved in (0, live) else 1 - (1 + ALPHA) * Fraction(solved, live)


def play_batch():
    """Bugs as (attempts, whether the artifact is valid), with their dump, and the reward of each rollout, None without one."""
    bugs, lines, rewards = [], [], {}

    def line(name, group, reward, status="completed"):
        prompt, reply = [rand.randrange(4000) for _ in range(3)], [rand.randrange(4000) for _ in range(rand.randint(1, 4))] + [4089]
        rewards[name] = reward
        lines.append({"turnpack_version": 1, "id": name, "group": group, "messages": [{"role": "user", "content": "x"}], "status": status,
                      "turns": [{"prompt_ids": prompt, "output_ids": reply, "logprobs": [-0.5] * len(reply), "version": rand.choice([0, 1, 7, 9]), "finish_reason": "stop"}],
                      "outcome": {} if reward is None else {"reward": float(reward)}})

    for b in range(rand.randint(2, 5)):
        valid = rand.random() < 0.8
        attempts = [rand.choice(["solved", "failed", "failed", "infra_error"]) for _ in range(rand.randint(2, 6))] if valid else []
        solved, live = attempts.count("solved"), len(attempts) - attempts.count("infra_error")
        line(f"inject/{b}", "injectors", Fraction(-1) if not valid else injector(solved, live) if live else None)
        for i, a in enumerate(attempts):
            lost = a == "infra_error"
            line(f"solve/{b}/{i}", f"bug/{b}", None if lost else Fraction(1 if a == "solved" else -1), "failed" if lost else "completed")
        bugs.append({"attempts": attempts, "valid": valid})
    return bugs, lines, rewards


def play_reference(lines, rewards):
    """Reward less the mean of its peers: solvers of one bug, injectors of all."""
    peers = defaultdict(list)
    for l in lines:
        peers[l["group"]].append(l)
    out = {}
    for members in peers.values():
        mean = sum(rewards[m["id"]] for m in members) / len(members)
        for m in members:
            out[m["id"]] = [float(rewards[m["id"]] - mean)] * len(m["turns"][0]["output_ids"])
    return out


def prime_reference(checkout, lines, rewards):
    """The same by HierarchicalGRPOAlgorithm.score_group of prime-rl."""
    import ast

    from trainers import run, tree

    source = Path(checkout) / "src" / "prime_rl" / "orchestrator" / "algo" / "hierarchical_grpo.py"
    got = {}
    names = dict(defaultdict=defaultdict, iter_trainable_traces=lambda episodes: episodes, assign_advantages=lambda t, a: got.__setitem__(t.id, a))
    cls = next(n for n in tree(source) if isinstance(n, ast.ClassDef) and n.name == "HierarchicalGRPOAlgorithm")
    run(source, [n for n in cls.body if getattr(n, "name", "") == "score_group"], names)
    episodes = []
    for l in lines:
        role = "proposer" if l["group"] == "injectors" else "solver"
        trace = types.SimpleNamespace(id=l["id"], reward=float(rewards[l["id"]]), agent=types.SimpleNamespace(name=role))
        episodes.append((types.SimpleNamespace(id=l["group"]), trace))
    asyncio.run(names["score_group"](types.SimpleNamespace(episode_agents={"solver"}), episodes))
    return {l["id"]: [got[l["id"]]] * len(l["turns"][0]["output_ids"]) for l in lines}


def check_play(golden):
    bugs, lines, rewards = play_batch()
    # Those without a reward compare with nobody, nor do those older than 8 versions.
    newest = max(l["turns"][0]["version"] for l in lines)
    left = [l for l in lines if rewards[l["id"]] is not None and newest - l["turns"][0]["version"] <= 8]
    want = play_reference(left, rewards)
    if checkout := os.environ.get("TURNPACK_PRIME_RL"):
        same(want, prime_reference(checkout, left, rewards))
    golden.append({"recipe": "ssr", "dump": lines, "bugs": bugs, "rewards": [None if rewards[l["id"]] is None else float(rewards[l["id"]]) for l in lines], "advantages": want})
    return same(want, converted(lines, "ssr", "--on-error", "skip"))


def main():
    reference, golden, tokens, single = None, [], 0, 0
    if (gym := os.environ.get("TURNPACK_NEMO_GYM")) and (nemo := os.environ.get("TURNPACK_NEMO_RL")):
        reference = pivot_reference(gym, nemo)
    for _ in range(COUNT):
        if reference:
            single += check_pivot(reference, golden)
        tokens += check_play(golden)
    if len(sys.argv) > 5:
        with open(sys.argv[5], "a", encoding="utf-8") as f:
            f.writelines(json.dumps(g) + "\n" for g in golden)
    steps = f"{COUNT} batches of single steps, {single} trained tokens" if reference else "single steps left out (TURNPACK_NEMO_GYM and TURNPACK_NEMO_RL name no checkouts)"
    print(f"{steps}; {COUNT} batches of self-play, {tokens} trained tokens: 0 differ")


main()
