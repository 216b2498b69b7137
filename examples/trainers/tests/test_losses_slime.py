"""Dumps through the command, the reader and slime's own code from the rollout function to the loss of its Megatron workers, each token's
gradient against one computed from the dump alone. TURNPACK_SLIME names a checkout.

Its workers need Megatron-LM and a GPU to start: of Megatron stands here what says that there is one process, and the model is a
tensor of logits. Ray hands out the same objects."""
import math
import os
import sys
import types
from argparse import Namespace

import pytest

from kit import BY_ROW, RATIO, cases, checkout, logits_of, near, rollout_mean, patched, slopes_of, taken_in, token_mean  # noqa: F401

torch = pytest.importorskip("torch", reason="SKIPPED: no torch in this Python")
batch = cases(BY_ROW)
SIZE = 6  # --global-batch-size: the last step is short


@pytest.fixture(scope="module")
def slime(taken_in, patched):  # noqa: F811
    """Its functions, with one process of every kind."""
    path = checkout("TURNPACK_SLIME", "slime")
    taken_in(["slime", "megatron"], [path], "ray", "sglang", "sglang_router", "httpx", "wandb")
    one = {f"get_{kind}_world_size": lambda *a, **k: 1 for kind in ("context_parallel", "data_parallel", "tensor_model_parallel", "virtual_pipeline_model_parallel")}
    mpu = types.SimpleNamespace(**one, get_context_parallel_rank=lambda: 0, get_tensor_model_parallel_group=lambda: None, is_pipeline_last_stage=lambda: True)
    for name, members in {"megatron": {}, "megatron.core": {"mpu": mpu}, "megatron.core.packed_seq_params": {"PackedSeqParams": types.SimpleNamespace}}.items():
        module = types.ModuleType(name)
        module.__dict__.update(members, __path__=[])
        patched.setitem(sys.modules, name, module)
    import ray
    ray.remote, ray.put, ray.get = lambda cls=None, **k: cls or (lambda c: c), lambda value: value, lambda value: value
    from slime.utils import accelerator
    patched.setattr(accelerator, "initialize_accelerator", lambda *a: None)
    patched.setattr(accelerator, "device", lambda *a: "cpu")
    from slime.backends.megatron_utils import data, loss
    from slime.ray.rollout import RolloutManager
    from slime.utils.data import process_rollout_data
    return types.SimpleNamespace(data=data, loss=loss, Manager=RolloutManager, process_rollout_data=process_rollout_data)


def arguments(per_token):
    return Namespace(global_batch_size=SIZE, use_dynamic_batch_size=True, max_tokens_per_gpu=24, micro_batch_size=None, balance_by_flops=False, balance_data=False, load_debug_rollout_data=None,
                     use_rollout_logprobs=True, kl_coef=0, custom_advantage_function_path=None, advantage_estimator="grpo", use_opd=False, normalize_advantages=False,
                     calculate_per_token_loss=per_token, loss_type="policy_loss", recompute_loss_function=False, allgather_cp=False, rollout_temperature=1.0, rollout_top_p=1.0,
                     log_probs_chunk_size=-1, entropy_coef=0.0, use_opsm=False, eps_clip=0.2, eps_clip_high=0.2, eps_clip_c=None, get_mismatch_metrics=False, use_tis=False, use_kl_loss=False,
                     debug_rollout_only=False, custom_loss_function_path=None)


@pytest.mark.parametrize("per_token", [False, True], ids=["rollouts", "tokens"])
def test_slime(batch, slime, monkeypatch, per_token):  # noqa: F811
    folder, want = batch.convert("slime", "--rollouts-per-step", str(SIZE))
    from turnpack_trainers import slime as ours
    monkeypatch.setenv("TURNPACK_FILE", str(folder / "data" / "step_{rollout_id}.parquet"))
    args = arguments(per_token)
    manager = object.__new__(slime.Manager)
    manager.args, manager.data_source, manager.generate_rollout = args, None, ours.generate_rollout
    manager.custom_reward_post_process_func, manager.custom_convert_samples_to_train_data_func = ours.use_file_advantages, None
    manager.train_parallel_config = {"dp_size": 1, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1}
    left = dict(want)
    keys = ["tokens", "total_lengths", "response_lengths", "loss_masks", "rollout_log_probs", "advantages", "rollout_mask_sums", "rollout_ids"]
    steps = len(os.listdir(folder / "data"))
    assert steps == math.ceil(len({key[0] for key in want}) / SIZE) > 1
    for step in range(steps):
        samples, _ = manager._get_rollout_data(step)
        (box,) = manager._split_train_data_by_dp(manager._convert_samples_to_train_data(samples))
        rollout_data = slime.process_rollout_data(args, [box], 0, 1)
        slime.loss.compute_advantages_and_returns(args, rollout_data)
        (iterator,) = slime.data.get_data_iterator(rollout_data)
        got, total = {}, 0
        for _ in rollout_data["micro_batch_indices"]:
            micro = slime.data.get_batch(iterator, keys)
            rows = [t.tolist() for t in micro["unconcat_tokens"]]
            flat = [i for r in rows for i in r]
            policy = []
            for ids, n, logprobs in zip(rows, micro["response_lengths"], micro["rollout_log_probs"]):
                policy += [0.0] * (len(ids) - n) + [p + math.log(RATIO) if p < 0 else 0.0 for p in logprobs.tolist()]
            assert micro["tokens"][0, :len(flat)].tolist() == flat
            logits = torch.zeros(1, micro["tokens"].shape[1], 32)
            logits[0, :len(flat)] = logits_of(torch, flat, policy)
            logits.requires_grad_()
            loss, count, _ = slime.loss.loss_function(args, micro, rollout_data["num_microbatches"][0], SIZE, logits)
            loss.backward()
            # Megatron divides by the micro-batches, or by the tokens of all of them.
            total += int(count)
            slopes = slopes_of(logits.grad[0], flat, policy)
            at = 0
            for ids in rows:
                got.setdefault(tuple(ids), []).append([s / (1 if per_token else rollout_data["num_microbatches"][0]) for s in slopes[at:at + len(ids)]])
                at += len(ids)
        here = {}
        for s in samples:
            if not s.remove_sample:
                (key,) = [k for k in left if k[1] == tuple(s.tokens) and s.metadata["sample_id"].split("#")[0].endswith(k[0])]
                here[key] = left.pop(key)
        fill = sum(s.remove_sample for s in samples)
        assert len({s.rollout_id for s in samples}) == SIZE and (fill > 0) == (step + 1 == steps)
        if per_token:
            trained = sum(sum(w.mask) for w in here.values())
            assert total == trained + fill, "a sample that trains nothing counts as one token"
            expect = {key: [s * trained / total for s in slopes] for key, slopes in token_mean(here).items()}
            got = {ids: [[s / total for s in slopes] for slopes in each] for ids, each in got.items()}
        else:
            expect = rollout_mean(here, SIZE)
        assert any(any(slopes) for slopes in expect.values())
        for key, slopes in expect.items():
            found = got[key[1]]
            assert any(g == near(slopes) for g in found), (key, slopes, found)
    assert not left
