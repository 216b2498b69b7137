"""The rows of a file through SkyRL's own functions, from the generator to the advantages that its workers train on."""
import asyncio
import math
import shlex
from types import SimpleNamespace

import pytest

from kit import RATIO, as_of_python_3_12, cases, commands, logits_of, near, slopes_of, token_mean

as_of_python_3_12()  # which SkyRL asks for
pytest.importorskip("skyrl.train.trainer", reason="SKIPPED: no skyrl in this Python (pip install './examples/trainers[skyrl]')")
import torch  # noqa: E402

from turnpack_trainers import skyrl, skyrl_main  # noqa: E402
from skyrl.train.generators.base import TrajectoryID  # noqa: E402
from skyrl.train.generators.utils import prepare_generator_input  # noqa: E402

batch = cases()


def row(group, rollout, index, last, prompt, mask, advantages, reward, temperature=0.7, logprobs=True):
    n = prompt + len(mask)
    return {"sample_id": f"{rollout}#{index}", "group_id": group, "rollout_id": rollout, "sample_index": index, "is_last": last, "prompt_len": prompt,
            "input_ids": list(range(10, 10 + n)), "loss_mask": [0] * prompt + mask, "logprobs": [0.0] * prompt + [-0.1 * (i + 1) * m for i, m in enumerate(mask)] if logprobs else None,
            "advantages": [0.0] * prompt + advantages, "versions": None, "reward": reward, "advantage": advantages[-1], "status": "completed", "finish_reason": "stop", "temperature": temperature}


# A fork whose rows have advantages of their own, a group of one, tool output within a row.
ROWS = [row("a", "a/0", 0, False, 2, [1, 1], [0.5, -5.0], 1.0), row("a", "a/0", 1, True, 3, [1, 0, 0, 1], [0.25, 0, 0, 0.75], 1.0),
        row("a", "a/1", 0, True, 2, [1], [-0.5], -1.0), row("b", "b/0", 0, True, 1, [1, 1, 1], [0.1, 0.2, 0.3], 0.5)]


def config(**changes):
    algorithm = SimpleNamespace(temperature=None, policy_loss_type="rollout_is", dynamic_sampling=SimpleNamespace(type=None), use_kl_in_reward=False, zero_variance_filter=False, max_seq_len=None,
                                off_policy_correction=SimpleNamespace(tis_ratio_type=None, sequence_mask_metric=None))
    trainer = SimpleNamespace(algorithm=algorithm, train_batch_size=2, policy_mini_batch_size=2, critic=SimpleNamespace(model=SimpleNamespace(path=None)))
    generator = SimpleNamespace(step_wise_trajectories=True, merge_stepwise_output=False, n_samples_per_prompt=2, sampling_params=SimpleNamespace(temperature=0.7))
    cfg = SimpleNamespace(trainer=trainer, generator=generator)
    for name, value in changes.items():
        at = cfg
        *path, last = name.split("__")
        for part in path:
            at = getattr(at, part)
        setattr(at, last, value)
    return cfg


def trainer_of(cfg, dp=1):
    t = object.__new__(skyrl_main.FileAdvantagesTrainer)
    t.cfg, t.all_metrics, t.tokenizer, t.dispatch = cfg, {}, SimpleNamespace(pad_token_id=0), SimpleNamespace(get_lcm_dp_size=lambda: dp)
    return t


@pytest.mark.parametrize("dp", [1, 3])
@pytest.mark.parametrize("logprobs", [True, False])
def test_advantages_reach_the_trainer(monkeypatch, dp, logprobs):
    rows = [{**r, "logprobs": r["logprobs"] if logprobs else None} for r in ROWS]
    monkeypatch.setattr(skyrl, "read_rows", lambda *a: rows)
    prompts, generator = skyrl.ExportPrompts("x"), skyrl.ExportGenerator("x")
    items = prompts.collate_fn([prompts[i] for i in range(len(prompts))])
    ids = [TrajectoryID(i["uid"], k) for i in items for k in range(2)]
    output = asyncio.run(generator.generate({"trajectory_ids": ids}))
    from skyrl.train.utils.trainer_utils import validate_generator_output
    validate_generator_output(len(ids), output, step_wise=True)
    t = trainer_of(config(), dp)
    uids = [i.instance_id for i in output["trajectory_ids"]]
    output.pop("rollout_metrics")
    output, uids = t.postprocess_generator_output(output, uids)
    data = t.convert_to_training_input(output, uids)
    data = t.compute_advantages_and_returns(data)
    assert t.all_metrics["reward/avg_raw_reward"] == pytest.approx((1.0 - 1.0 + 0.5) / 3), "metrics tell rewards, not advantages"
    for i, r in enumerate(rows):
        n = len(r["input_ids"]) - r["prompt_len"]
        want = [a * m for a, m in zip(r["advantages"], r["loss_mask"])][r["prompt_len"]:]
        assert data["advantages"][i, -n:].tolist() == pytest.approx(want)
        assert not data["advantages"][i, :-n].any()
        assert data["loss_mask"][i, -n:].tolist() == r["loss_mask"][r["prompt_len"]:]
        assert data["sequences"][i, -len(r["input_ids"]):].tolist() == r["input_ids"]
        if logprobs:
            assert data["rollout_logprobs"][i, -n:].tolist() == pytest.approx(r["logprobs"][r["prompt_len"]:])
    assert logprobs or data.get("rollout_logprobs") is None
    assert not (data["advantages"][len(rows):] * data["loss_mask"][len(rows):]).any(), "rows that fill up a batch train nothing"
    assert len(data["sequences"]) % dp == 0
    assert torch.equal(data["advantages"], data["returns"])


@pytest.mark.parametrize("weights", ["none", "rollout-mean"])
def test_loss_and_gradient(batch, monkeypatch, weights):
    """kit's dump through the command, the README's settings, dataset and override, to the loss of SkyRL's policy workers: the gradient of
    each token against one from the dump alone. Its workers need GPUs, so the model is a tensor of logits."""
    from skyrl.backends.skyrl_train.utils import ppo_utils, torch_utils
    folder, want = batch.convert("skyrl", "--weights", weights)
    path, groups = folder / "batch.parquet", {}
    for name, _ in want:
        groups.setdefault(name.rsplit("-", 1)[0], set()).add(name)
    (command,) = commands("skyrl")
    command = command.replace("=GROUPS", f"={len(groups)}").replace("=ROLLOUTS", f"={max(map(len, groups.values()))}").replace("=T ", "=1 ").replace("…", "")
    monkeypatch.setenv("TURNPACK_FILE", str(path))
    cfg, path = skyrl_main.settings(shlex.split(command.split("main_base ")[1]))
    prompts, generator = skyrl.ExportPrompts(path), skyrl.ExportGenerator(path)
    asked, uids = prepare_generator_input(prompts.collate_fn([prompts[i] for i in range(len(prompts))]), cfg.generator.n_samples_per_prompt, {}, "", "train", 0)
    t = trainer_of(cfg)
    t.generator = generator
    output = asyncio.run(t.generate(asked))
    output, uids = t.postprocess_generator_output(output, [i.instance_id for i in output["trajectory_ids"]])
    data = t.compute_advantages_and_returns(t.convert_to_training_input(output, uids))
    data = t._normalize_advantages(data, data.metadata["policy_mini_batch_boundaries"], data.metadata["policy_prompt_boundaries"])
    ids, mask, old = data["sequences"], data["loss_mask"], data["rollout_logprobs"]
    width = mask.shape[1]
    policy = torch.zeros(ids.shape)
    policy[:, -width:] = (old + math.log(RATIO)) * mask
    logits = torch.stack([logits_of(torch, i, p) for i, p in zip(ids.tolist(), policy.tolist())]).requires_grad_()
    logprobs = torch_utils.logprobs_from_logits(logits[:, :-1], ids[:, 1:], inplace_backward=False)[:, -width:]
    loss = ppo_utils.PolicyLossRegistry.get(cfg.trainer.algorithm.policy_loss_type)
    loss(logprobs, logprobs.detach(), data["advantages"], config=cfg.trainer.algorithm, loss_mask=mask, rollout_logprobs=old)[0].backward()
    left = token_mean(want)
    if weights == "rollout-mean":
        total, rollouts = sum(sum(w.mask) for w in want.values()), len({name for name, _ in want})
        left = {key: [s * total / want[key].of_rollout / rollouts for s in slopes] for key, slopes in left.items()}
    assert any(any(slopes) for slopes in left.values())
    for i, row in enumerate(ids.tolist()):
        n = int(data["attention_mask"][i].sum())
        slopes = slopes_of(logits.grad[i], row, policy[i].tolist())
        found = [key for key, s in left.items() if list(key[1]) == row[-n:] and s == near(slopes[-n:])]
        assert found and not any(slopes[:-n]), (row, slopes, left)
        assert ([0.0] * (n - width) + (old * mask)[i].tolist())[-n:] == near(want[found[0]].logprobs)
        del left[found[0]]
    assert not left


def test_settings_that_change_rows_are_refused():
    for change in ({"generator__merge_stepwise_output": True}, {"trainer__algorithm__use_kl_in_reward": True}, {"trainer__algorithm__dynamic_sampling__type": "filter"},
                   {"trainer__algorithm__zero_variance_filter": True}, {"trainer__algorithm__advantage_batch_normalize": True},
                   {"generator__apply_overlong_filtering": True}, {"generator__zero_reward_on_non_stop": True}):
        with pytest.raises(ValueError, match="leave it out"):
            skyrl_main.FileAdvantagesTrainer(config(**change))


def test_settings_that_do_not_fit():
    skyrl_main.fits(ROWS, config())
    for change, why in (({"trainer__train_batch_size": 4}, "drops 2"), ({"trainer__policy_mini_batch_size": 4}, "policy_mini_batch_size=4 is more"), ({"generator__n_samples_per_prompt": 4}, "n_samples_per_prompt=2"),
                        ({"generator__step_wise_trajectories": False}, "step_wise_trajectories=true"), ({"generator__sampling_params__temperature": 1.0}, "temperature 0.7, and generator"), ({"trainer__algorithm__temperature": 1.0}, "temperature 0.7, and trainer")):
        with pytest.raises(ValueError, match=why):
            skyrl_main.fits(ROWS, config(**change))
