"""Dumps through the command, the reader and the trainer's own advantages and loss; each token's gradient against one computed
from the dump alone (kit.py says what is in the dump), merged and in per-step rows, with scores of the steps in the reward and of
their own. slime's is in test_losses_slime.py, those of other checkouts in test_losses_slime.py, test_losses_prime_rl.py and test_nemo_rl.py, SkyRL's also in test_skyrl.py."""
import asyncio
import importlib.util
import json
import math
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from kit import BY_ROLLOUT, BY_ROW, DUMP, FLAGS, MODEL, RATIO, SCORED, cases, command, expected, near, token_mean, write_dump

torch = pytest.importorskip("torch", reason="SKIPPED: no torch in this Python")
batch, batch_of_rollouts = cases(BY_ROW), cases(BY_ROLLOUT)


def test_verl(batch_of_rollouts, tmp_path):
    """The agent loop, the registered estimator and compute_policy_loss of verl."""
    pytest.importorskip("verl.experimental.agent_loop.agent_loop", reason="SKIPPED: no verl in this Python", exc_type=ImportError)
    import pyarrow.parquet as pq
    from turnpack_trainers import prompts, verl
    from verl.trainer.config import AlgoConfig
    from verl.trainer.ppo import core_algos
    folder, want = batch_of_rollouts.convert("verl")
    slopes, path = token_mean(want), folder / "batch.parquet"
    prompts.write_prompts(path, tmp_path / "prompts.parquet")
    loop = object.__new__(verl.ReplayLoop)
    loop.rollout_config = {"prompt_length": 16, "response_length": 16, "temperature": 1.0}
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
    (first, *_) = pq.read_table(tmp_path / "prompts.parquet").to_pylist()
    for setting, why in (({"temperature": 0.7}, "rollout.temperature is 0.7"), ({"prompt_length": 2}, "prompt of [34] tokens, and .*prompt_length is 2"), ({"response_length": 1}, "data.max_response_length")):
        other = object.__new__(verl.ReplayLoop)
        other.rollout_config = {**loop.rollout_config, **setting}
        with pytest.raises(ValueError, match=why):
            asyncio.run(other.run({}, session_id=0, **first))
    with pytest.raises(ValueError, match="algorithm.use_kl_in_reward"):
        core_algos.get_adv_estimator_fn("turnpack")(token_level_rewards=scores, response_mask=mask, config=AlgoConfig(use_kl_in_reward=True))
    left = dict(want)
    for i, (group, o) in enumerate(outputs):
        key = next(k for k in left if k[0].startswith(group + "-") and k[1] == tuple(o.prompt_ids + o.response_ids))
        n, start = len(o.response_ids), len(o.prompt_ids)
        assert policy.grad[i, :n].tolist() == near(slopes[key][start:]), key
        assert o.response_logprobs == near(left.pop(key).logprobs[start:]), key
    assert not left and policy.grad.abs().sum() > 0


def test_areal(batch):
    """The workflow, and the advantages and the loss of AReaL's actor with the settings of the README."""
    actor = pytest.importorskip("areal.trainer.ppo.actor", reason="SKIPPED: no areal in this Python", exc_type=ImportError)
    from areal.utils.data import concat_padded_tensors
    from areal.utils.functional import ppo_actor_loss_fn
    from turnpack_trainers import areal
    folder, want = batch.convert("areal")
    slopes, path = token_mean(want), folder / "batch.parquet"
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
        key, n = (r["rollout_id"], tuple(r["input_ids"])), len(r["input_ids"])
        assert policy.grad[i, :n - 1].tolist() == near(slopes[key][1:]), r["sample_id"]  # at the label's position
        assert r["logprobs"] == near(left.pop(key).logprobs)
        assert versions[i, :n].tolist() == r["versions"]
    assert not left and policy.grad.abs().sum() > 0
    assert {v for r in rows for v in r["versions"]} == {-1, 3, 4, 5}


def test_areal_of_text(batch):
    """Rows without log probabilities are refused unless the actor computes them, and are trained on the same tokens then."""
    pytest.importorskip("areal.api.workflow_api", reason="SKIPPED: no areal in this Python", exc_type=ImportError)
    from turnpack_trainers import areal
    episode = [{**r, "logprobs": None} for r in areal.episodes(batch.convert("areal")[0] / "batch.parquet")[0]]
    with pytest.raises(ValueError, match="recompute_logprob"):
        asyncio.run(areal.ReplayWorkflow().arun_episode(None, episode))
    got = asyncio.run(areal.ReplayWorkflow(recomputed=True).arun_episode(None, episode))
    assert not got["logprobs"].any() and got["loss_mask"].sum() == sum(sum(r["loss_mask"]) for r in episode)


@pytest.mark.parametrize(("target", "mode", "why"), [("verl", "perstep", "it gives all rows of a rollout the score of the last"), ("areal", "merged", "it reads one advantage per row"),
                                                     ("slime", "merged", "it reads one advantage per row")])
def test_scores_that_do_not_fit(tmp_path, target, mode, why):
    """Where a trainer would give steps another's advantage, the conversion says so and writes nothing to train on."""
    said = subprocess.run([command(), "convert", "--model", MODEL, "--in", write_dump(tmp_path / "dump.jsonl", SCORED), "--out", tmp_path / "batch", "--quiet", "--format", "native",
                           "--mode", mode, "--target", target, *FLAGS["steps"]], capture_output=True, text=True)
    assert said.returncode == 1 and why in said.stderr and not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("scores", ["", "reward", "steps"])
def test_trl(tmp_path, scores):
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
    # Near what the model of the step gives, so that the ratio stays inside the clip.
    dump = [{**r, "turns": [{**t, "logprobs": [-6.2 - 0.02 * i for i in range(len(t["output_ids"]))]} for t in r["turns"]]} for r in (SCORED if scores else DUMP)]
    said = subprocess.run([command(), "convert", "--model", MODEL, "--in", write_dump(tmp_path / "dump.jsonl", dump), "--out", tmp_path / "batch", "--json", "--format", "native",
                           "--target", "trl", "--group-size", "2", *FLAGS[scores]], check=True, capture_output=True, text=True).stdout
    summary = json.loads(said)
    assert summary["target_left_out"] == {"rollout of several rows": 1, "rollout of an incomplete group": 1}
    without = {"excluded: aborted": 1, "excluded: nothing was sampled": 1}
    if scores == "steps":
        without = {"aborted": 1, "no step score computed": 1, "all rewards of the group are alike": 2}
    assert summary["rollouts_without_rows"] == without
    from turnpack_trainers import read_rows
    rows = read_rows(tmp_path / "batch" / "batch.parquet")
    want = expected(False, dump, scores)
    for r in rows:
        w = want.pop((r["rollout_id"], tuple(r["input_ids"])))
        assert r["loss_mask"] == w.mask and [a * m for a, m in zip(r["advantages"], r["loss_mask"])] == near(w.advantages), r["sample_id"]
        assert r["logprobs"] == near(w.logprobs)
    assert {k[0] for k in want} == {"ragged-0", "single-0"}
    assert {r["status"] for r in rows} == {"completed", "truncated"} and {v for r in rows for v in r["versions"]} == {-1, 3, 4, 5}
    path = Path(__file__).resolve().parents[3] / "internal" / "oracle" / "train_trl.py"
    spec = importlib.util.spec_from_file_location("train_trl", path)
    train_trl = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(train_trl)
    train_trl.main(tmp_path / "batch" / "batch.parquet")
