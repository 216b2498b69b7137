"""Dumps through the command, the reader and the trainer's own advantages and loss; each token's gradient against one computed
from the dump alone. In the dump: a fork, tool output within a row, a rollout cut off, one aborted, one without a reply, ragged
groups, a group without spread, one of a single rollout, turns of several policy versions. SkyRL's is in test_skyrl.py, NeMo-RL's
in test_nemo_rl.py."""
import asyncio
import importlib.util
import json
import math
import os
import statistics
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: no torch in this Python")
MODEL = Path(__file__).resolve().parents[2] / "tutorial" / "model"
RATIO = 0.95  # of the policy to the recorded one, inside every clip


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


def expected(per_step, dump=DUMP):
    """{ids of a row: gradient of each of its tokens} of the clipped token mean, and the log probability recorded for each."""
    counted = [r for r in dump if r["status"] != "aborted" and r["turns"]]
    total = sum(len(t["output_ids"]) for r in counted for t in r["turns"])
    want = {}
    for r in counted:
        rewards = [o["outcome"]["reward"] for o in counted if o["group"] == r["group"]]
        spread = statistics.stdev(rewards) if len(rewards) > 1 else 0.0
        advantage = (r["outcome"]["reward"] - statistics.mean(rewards)) / (spread + 1e-6) if spread else 0.0
        ids, slopes, logprobs = [], [], []
        rows = []
        for t in r["turns"]:
            if per_step or t["prompt_ids"][:len(ids)] != ids:
                rows.append((ids, slopes, logprobs))
                ids, slopes, logprobs = [], [], []
            context = len(t["prompt_ids"]) - len(ids)
            ids = t["prompt_ids"] + t["output_ids"]
            slopes = slopes + [0.0] * context + [-RATIO * advantage / total] * len(t["output_ids"])
            logprobs = logprobs + [0.0] * context + t["logprobs"]
        rows.append((ids, slopes, logprobs))
        for ids, slopes, logprobs in rows:
            if ids:
                want[r["id"], tuple(ids)] = slopes, logprobs
    return want


@pytest.fixture(params=["merged", "perstep"])
def file(tmp_path, request):
    """A function that converts the dump for a target, and the gradients to find."""
    binary = os.environ.get("TURNPACK_BIN")
    if not binary:
        pytest.skip("SKIPPED: set TURNPACK_BIN to the turnpack command")
    (tmp_path / "dump.jsonl").write_text("".join(json.dumps(r) + "\n" for r in DUMP))

    def convert(target):
        subprocess.run([binary, "convert", "--model", MODEL, "--in", tmp_path / "dump.jsonl", "--out", tmp_path / "batch", "--quiet", "--format", "native",
                        "--mode", request.param, "--target", target], check=True, capture_output=True)
        return tmp_path / "batch" / "batch.parquet", expected(request.param == "perstep")
    return convert


def test_verl(file, tmp_path):
    """The agent loop, the registered estimator and compute_policy_loss of verl."""
    pytest.importorskip("verl.experimental.agent_loop.agent_loop", reason="SKIPPED: no verl in this Python", exc_type=ImportError)
    import pyarrow.parquet as pq
    from turnpack_trainers import prompts, verl
    from verl.trainer.ppo import core_algos
    path, want = file("verl")
    prompts.write_prompts(path, tmp_path / "prompts.parquet")
    loop = object.__new__(verl.ReplayLoop)
    outputs = [(p["turnpack_group"], o) for p in pq.read_table(tmp_path / "prompts.parquet").to_pylist() for k in range(p["__rollout_n__"])
               for o in asyncio.run(loop.run({}, session_id=k, **p))]
    width = max(len(o.response_ids) for _, o in outputs)

    def padded(values):
        return torch.tensor([list(v) + [0] * (width - len(v)) for v in values], dtype=torch.float32)

    mask, old = padded(o.response_mask for _, o in outputs), padded(o.response_logprobs for _, o in outputs)
    scores = padded([0.0] * (len(o.response_ids) - 1) + [o.reward_score] for _, o in outputs)
    advantages, _ = core_algos.get_adv_estimator_fn("turnpack")(scores, mask)
    policy = (old + math.log(RATIO)).requires_grad_()
    core_algos.compute_policy_loss(old, policy, advantages, mask, cliprange=0.2, cliprange_low=0.2, cliprange_high=0.2, loss_agg_mode="token-mean")[0].backward()
    left = dict(want)
    for i, (group, o) in enumerate(outputs):
        key = next(k for k in left if k[0].startswith(group + "-") and k[1] == tuple(o.prompt_ids + o.response_ids))
        slopes, logprobs = left.pop(key)
        n = len(o.response_ids)
        assert policy.grad[i, :n].tolist() == pytest.approx(slopes[len(o.prompt_ids):], abs=1e-6), key
        assert o.response_logprobs == pytest.approx(logprobs[len(o.prompt_ids):]), key
    assert not left and policy.grad.abs().sum() > 0


def test_areal(file):
    """The workflow, and the advantages and the loss of AReaL's actor with the settings of the README."""
    actor = pytest.importorskip("areal.trainer.ppo.actor", reason="SKIPPED: no areal in this Python", exc_type=ImportError)
    from areal.utils.data import concat_padded_tensors
    from areal.utils.functional import ppo_actor_loss_fn
    from turnpack_trainers import areal
    path, want = file("areal")
    workflow, episodes = areal.ReplayWorkflow(), areal.episodes(path)
    rows = [r for e in episodes for r in e]
    data = concat_padded_tensors([asyncio.run(workflow.arun_episode(None, e)) for e in episodes])
    versions = data["versions"].clone()
    a = object.__new__(actor.PPOActor)
    a.config = SimpleNamespace(overlong_reward_penalty=False, use_decoupled_loss=False, recompute_logprob=False)
    a.reward_bias, a.reward_scaling, a.reward_clip, a.reward_norm, a.adv_norm = 0.0, 1.0, 1e6, None, None
    a.kl_ctl, a.kl_estimator, a.mask_no_eos_with_zero, a.discount, a.gae_lambda = 0.0, lambda x, y: x - y, False, 1.0, 1.0
    data = a._compute_advantages(data)
    policy = (data["logprobs"] + math.log(RATIO)).detach().requires_grad_()
    loss, _ = ppo_actor_loss_fn(logprobs=policy, proximal_logprobs=data["prox_logp"], old_logprobs=data["logprobs"], advantages=data["advantages"],
                                eps_clip=0.2, loss_mask=data["loss_mask"].bool())
    loss.backward()
    left = dict(want)
    for i, r in enumerate(rows):
        slopes, logprobs = left.pop((r["rollout_id"], tuple(r["input_ids"])))
        n = len(slopes)
        assert policy.grad[i, :n - 1].tolist() == pytest.approx(slopes[1:], abs=1e-6), r["sample_id"]  # at the label's position
        assert r["logprobs"] == pytest.approx(logprobs)
        assert versions[i, :n].tolist() == r["versions"]
    assert not left and policy.grad.abs().sum() > 0
    assert {v for r in rows for v in r["versions"]} == {-1, 3, 4, 5}


def test_areal_of_text(file):
    """Rows without log probabilities are refused unless the actor computes them, and are trained on the same tokens then."""
    pytest.importorskip("areal.api.workflow_api", reason="SKIPPED: no areal in this Python", exc_type=ImportError)
    from turnpack_trainers import areal
    episode = [{**r, "logprobs": None} for r in areal.episodes(file("areal")[0])[0]]
    with pytest.raises(ValueError, match="recompute_logprob"):
        asyncio.run(areal.ReplayWorkflow().arun_episode(None, episode))
    got = asyncio.run(areal.ReplayWorkflow(recomputed=True).arun_episode(None, episode))
    assert not got["logprobs"].any() and got["loss_mask"].sum() == sum(sum(r["loss_mask"]) for r in episode)


def test_trl(tmp_path):
    """A step of GRPOTrainer and of FileAdvantagesTrainer on a CPU, weight by weight against the gradient of the file's rows, and those against
    the dump. TRL takes groups of one size, a row each: a rollout cut off, groups that lose one to an abort or have one without a reply,
    turns of several versions with tool output between; the fork and the group of one are left out."""
    try:
        import trl  # noqa: F401
        from datasets import Dataset  # noqa: F401
    except ImportError:
        pytest.skip("SKIPPED: no trl in this Python")
    if not hasattr(trl, "GRPOTrainer"):  # a folder of READMEs has that name
        pytest.skip("SKIPPED: no trl in this Python")
    binary = os.environ.get("TURNPACK_BIN")
    if not binary:
        pytest.skip("SKIPPED: set TURNPACK_BIN to the turnpack command")
    # Near what the model of the step gives, so that the ratio stays inside the clip.
    dump = [{**r, "turns": [{**t, "logprobs": [-6.2 - 0.02 * i for i in range(len(t["output_ids"]))]} for t in r["turns"]]} for r in DUMP]
    (tmp_path / "dump.jsonl").write_text("".join(json.dumps(r) + "\n" for r in dump))
    said = subprocess.run([binary, "convert", "--model", MODEL, "--in", tmp_path / "dump.jsonl", "--out", tmp_path / "batch", "--json", "--format", "native", "--target", "trl", "--group-size", "2"],
                          check=True, capture_output=True, text=True).stdout
    summary = json.loads(said)
    assert summary["target_left_out"] == {"rollout of several rows": 1, "rollout of an incomplete group": 1}
    assert summary["rollouts_without_rows"] == {"excluded: aborted": 1, "excluded: nothing was sampled": 1}
    from turnpack_trainers import read_rows
    rows = read_rows(tmp_path / "batch" / "batch.parquet")
    want = expected(False, dump)
    total = sum(len(t["output_ids"]) for r in dump if r["status"] != "aborted" for t in r["turns"])
    for r in rows:
        slopes, logprobs = want.pop((r["rollout_id"], tuple(r["input_ids"])))
        assert [-RATIO * a * m / total for a, m in zip(r["advantages"], r["loss_mask"])] == pytest.approx(slopes, abs=1e-6), r["sample_id"]
        assert r["logprobs"] == pytest.approx(logprobs)
    assert {k[0] for k in want} == {"ragged-0", "single-0"}
    assert {r["status"] for r in rows} == {"completed", "truncated"} and {v for r in rows for v in r["versions"]} == {-1, 3, 4, 5}
    path = Path(__file__).resolve().parents[3] / "internal" / "oracle" / "train_trl.py"
    spec = importlib.util.spec_from_file_location("train_trl", path)
    train_trl = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(train_trl)
    train_trl.main(tmp_path / "batch" / "batch.parquet")
