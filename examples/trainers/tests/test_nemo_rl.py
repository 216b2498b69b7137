"""The rows of a file through NeMo-RL's own functions, in the order of grpo_train, to its loss: its model workers need GPUs, so the
model is a tensor of logits.

TURNPACK_NEMO_RL names a checkout of NeMo-RL."""
import contextlib
import math
import os
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from kit import RATIO, as_of_python_3_12, cases, logits_of, near, slopes_of, token_mean

CHECKOUT = os.environ.get("TURNPACK_NEMO_RL")
if not CHECKOUT:
    pytest.skip("SKIPPED: set TURNPACK_NEMO_RL to a checkout of NeMo-RL", allow_module_level=True)
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
with contextlib.suppress(ImportError):  # it asks whether packages are there for which mocks stand below
    import datasets  # noqa: F401
as_of_python_3_12()
sys.path.insert(0, CHECKOUT)
version, absent = sys.modules["transformers"].__version__, []
while True:
    try:
        from nemo_rl.algorithms import grpo
        break
    except AssertionError:  # it refuses transformers from 5.12 on, for a tokenizer that is not used here
        sys.modules["transformers"].__version__ = "5.11.0"
    except ModuleNotFoundError as e:  # loggers and engines, none of which is called
        if e.name.startswith("nemo_rl"):
            raise
        absent.append(e.name)
        sys.modules[e.name] = MagicMock(__path__=[], __spec__=None)
    except ImportError as e:
        if "TensorBoard" not in str(e):
            raise
        absent.append("torch.utils.tensorboard")
        sys.modules[absent[-1]] = MagicMock()
from nemo_rl.algorithms.loss.loss_functions import ClippedPGLossConfig, ClippedPGLossFn  # noqa: E402
from nemo_rl.algorithms.loss.utils import prepare_loss_input  # noqa: E402
from nemo_rl.data.llm_message_utils import batched_message_log_to_flat_message  # noqa: E402
from nemo_rl.distributed.batched_data_dict import BatchedDataDict  # noqa: E402
from turnpack_trainers import nemo_rl  # noqa: E402

sys.modules["transformers"].__version__ = version
for name in absent:  # other tests' trainers ask whether they are there
    del sys.modules[name]


def row(group, rollout, index, prompt, mask, advantage, reward, status="completed"):
    n = prompt + len(mask)
    return {"sample_id": f"{rollout}#{index}", "group_id": group, "rollout_id": rollout, "sample_index": index, "prompt_len": prompt, "input_ids": list(range(10, 10 + n)),
            "loss_mask": [0] * prompt + mask, "logprobs": [0.0] * prompt + [-0.1 * (i + 1) * m for i, m in enumerate(mask)], "reward": reward, "advantage": advantage, "status": status, "temperature": 1.0}


# A fork, tool output within a row, a rollout cut off, a ragged group, one of a single rollout.
ROWS = [row("a", "a/0", 0, 2, [1, 1], 0.5, 1.0), row("a", "a/0", 1, 3, [1, 0, 0, 1], -0.25, 1.0), row("a", "a/1", 0, 2, [0, 1], -0.5, -1.0, "truncated"),
        row("b", "b/0", 0, 1, [1, 1, 1], 2.0, 0.5), row("b", "b/1", 0, 1, [1], 0.0, 0.5)]
ROWS[3]["advantages"] = [0.0, 2.0, -1.0, 0.5]  # of an estimator of tokens


def config(correction=False, **grpo_settings):
    settings = dict(seq_logprob_error_threshold=None, async_grpo=None, use_dynamic_sampling=False, val_period=0, val_at_start=False, val_at_end=False, num_prompts_per_step=1, num_generations_per_prompt=1,
                    overlong_filtering=False, advantage_clip_low=None, advantage_clip_high=None, invalid_tool_call_advantage=None, malformed_thinking_advantage=None,
                    reward_scaling=SimpleNamespace(enabled=False), reward_shaping=SimpleNamespace(enabled=False))
    return SimpleNamespace(data_plane=None, env={}, policy={"train_global_batch_size": 4, "generation": {"temperature": 1.0}}, grpo=SimpleNamespace(**{**settings, **grpo_settings}),
                           loss_fn=SimpleNamespace(use_importance_sampling_correction=correction, use_kl_in_reward=False))


batch = cases()


@pytest.fixture
def own(monkeypatch):
    """What replay puts in the place of NeMo-RL's is taken back after the test."""
    for name in ("_create_advantage_estimator", "run_multi_turn_rollout", "run_async_multi_turn_rollout", "calculate_baseline_and_std_per_prompt"):
        monkeypatch.setattr(grpo, name, getattr(grpo, name))


@pytest.fixture
def replayed(own, monkeypatch):
    asked = []
    monkeypatch.setattr(nemo_rl, "read_rows", lambda path: asked.append(path) or [dict(r) for r in ROWS])
    nemo_rl.replay("step_{step}.parquet")
    return asked


def test_rows_and_advantages(replayed):
    estimator = grpo._create_advantage_estimator(config())
    for rollout in (grpo.run_multi_turn_rollout, grpo.run_async_multi_turn_rollout):
        rows, metrics = rollout(policy_generation=None, input_batch=None)
    assert replayed == ["step_0.parquet", "step_1.parquet"]
    assert metrics["mean_gen_tokens_per_sample"] > 0
    assert rows.size == 8, "a multiple of train_global_batch_size"
    rewards = rows["total_reward"]
    baseline, std = grpo.calculate_baseline_and_std_per_prompt(torch.zeros(1, 3), rewards, torch.ones_like(rewards), leave_one_out_baseline=True)
    rows, complete, _, _ = grpo.dynamic_sampling(rows, std, baseline, 1, config(), None, None)
    assert complete and rows.size == 8
    prompts = grpo.extract_initial_prompt_messages(rows["message_log"], rows["length"])
    assert [sum(len(m["token_ids"]) for m in p) for p in prompts[:5]] == [r["prompt_len"] for r in ROWS]
    grpo.add_grpo_token_loss_masks_and_generation_logprobs(rows["message_log"])
    flat, lengths = batched_message_log_to_flat_message(rows["message_log"], pad_value_dict={"token_ids": 0})
    mask = flat["token_loss_mask"] * rows["loss_multiplier"].unsqueeze(-1)
    advantages = estimator.compute_advantage(prompt_ids=None, rewards=rewards, mask=mask, repeated_batch=rows, logprobs_policy=None, logprobs_reference=None)
    for i, r in enumerate(ROWS):
        n = len(r["input_ids"])
        assert lengths[i] == n
        assert flat["token_ids"][i, :n].tolist() == r["input_ids"]
        assert mask[i, :n].tolist() == r["loss_mask"]
        assert flat["generation_logprobs"][i, :n].tolist() == pytest.approx(r["logprobs"])
        assert (advantages * mask)[i, :n].tolist() == pytest.approx([a * m for a, m in zip(r.get("advantages") or [r["advantage"]] * n, r["loss_mask"])])
    assert not mask[len(ROWS):].any()


def test_settings_that_leave_rows_out(replayed):
    on = SimpleNamespace(enabled=True)
    for setting in ({"use_dynamic_sampling": True}, {"val_period": 5}, {"val_at_start": True}, {"val_at_end": True}, {"async_grpo": on}, {"overlong_filtering": True}, {"advantage_clip_low": -1.0},
                    {"advantage_clip_high": 1.0}, {"invalid_tool_call_advantage": -5.0}, {"malformed_thinking_advantage": -5.0}, {"reward_scaling": on}, {"reward_shaping": on}):
        with pytest.raises(ValueError, match=f"grpo.{next(iter(setting))}"):
            grpo._create_advantage_estimator(config(**setting))


def test_settings_that_name_other_policies(replayed):
    settings = config()
    settings.loss_fn.use_kl_in_reward = True
    with pytest.raises(ValueError, match="loss_fn.use_kl_in_reward"):
        grpo._create_advantage_estimator(settings)
    settings = config()
    settings.policy["generation"]["temperature"] = 0.7
    grpo._create_advantage_estimator(settings)
    with pytest.raises(ValueError, match="temperature 1, and policy.generation.temperature is 0.7"):
        grpo.run_multi_turn_rollout()


def test_settings_are_those_of_nemo_rl():
    """What is refused are settings that its own configuration has."""
    own = grpo.MasterConfig.model_fields["grpo"].annotation
    assert set(vars(config().grpo)) <= set(own.model_fields)
    assert set(vars(config().loss_fn)) <= set(ClippedPGLossConfig.model_fields)


def test_rows_of_text(replayed, monkeypatch):
    """Without log probabilities a row trains the same tokens, and what would read them is refused."""
    monkeypatch.setattr(nemo_rl, "read_rows", lambda path: [{**r, "logprobs": None} for r in ROWS])
    grpo._create_advantage_estimator(config())
    rows, _ = grpo.run_multi_turn_rollout()
    grpo.add_grpo_token_loss_masks_and_generation_logprobs(rows["message_log"])
    flat, _ = batched_message_log_to_flat_message(rows["message_log"], pad_value_dict={"token_ids": 0})
    assert [flat["token_loss_mask"][i, :len(r["loss_mask"])].tolist() for i, r in enumerate(ROWS)] == [r["loss_mask"] for r in ROWS]
    for settings, why in ((config(correction=True), "use_importance_sampling_correction"), (config(seq_logprob_error_threshold=2.0), "seq_logprob_error_threshold")):
        grpo._create_advantage_estimator(settings)
        with pytest.raises(ValueError, match=why):
            grpo.run_multi_turn_rollout()


@pytest.mark.parametrize("correction", [False, True], ids=["ratio", "correction"])
def test_loss_and_gradient(batch, own, monkeypatch, correction):
    """kit's dump through the command, the reader and ClippedPGLossFn, against a gradient from the dump alone. NeMo-RL clips the ratio to the
    policy before the step: with the correction that policy is the one that trains, and its weight is the ratio to the one that sampled."""
    folder, want = batch.convert("nemo-rl")
    nemo_rl.replay(str(folder / "batch.parquet"))
    settings = config(correction=correction)
    settings.policy["train_global_batch_size"] = 16
    estimator = grpo._create_advantage_estimator(settings)
    rows, _ = grpo.run_multi_turn_rollout()
    grpo.add_grpo_token_loss_masks_and_generation_logprobs(rows["message_log"])
    flat, lengths = batched_message_log_to_flat_message(rows["message_log"], pad_value_dict={"token_ids": 0})
    data = BatchedDataDict({"input_ids": flat["token_ids"], "input_lengths": lengths, "generation_logprobs": flat["generation_logprobs"],
                            "token_mask": flat["token_loss_mask"], "sample_mask": rows["loss_multiplier"]})
    mask = data["token_mask"] * data["sample_mask"].unsqueeze(-1)
    policy = (data["generation_logprobs"] + math.log(RATIO) * data["token_mask"])
    data["prev_logprobs"] = policy if correction else data["generation_logprobs"]
    data["advantages"] = estimator.compute_advantage(prompt_ids=None, rewards=rows["total_reward"], mask=mask, repeated_batch=rows, logprobs_policy=data["prev_logprobs"], logprobs_reference=None)
    logits = torch.stack([logits_of(torch, ids, p) for ids, p in zip(data["input_ids"].tolist(), policy.tolist())]).requires_grad_()
    monkeypatch.setattr(torch.Tensor, "cuda", lambda self, *a, **k: self)
    loss = ClippedPGLossFn(ClippedPGLossConfig(reference_policy_kl_penalty=0.0, use_importance_sampling_correction=correction))
    given, data = prepare_loss_input(logits, data, loss)
    loss(**given, data=data, global_valid_seqs=data["sample_mask"].sum(), global_valid_toks=mask[:, 1:].sum())[0].backward()
    left = token_mean(want)
    for i, n in enumerate(lengths.tolist()):
        slopes = slopes_of(logits.grad[i], data["input_ids"][i].tolist(), policy[i].tolist())
        if not data["sample_mask"][i]:
            assert not any(slopes), "rows that fill up a batch train nothing"
            continue
        found = [key for key, s in left.items() if key[1] == tuple(data["input_ids"][i, :n].tolist()) and s == near(slopes[:n])]
        assert found and not any(slopes[n:]), (i, slopes)
        assert data["generation_logprobs"][i, :n].tolist() == near(want[found[0]].logprobs)
        del left[found[0]]
    assert not left and logits.grad.abs().sum() > 0
