"""The trainers' own functions, taken out of their packages and checkouts.

Single functions, classes and statements are run as they stand; what they use of the
rest is stood in where it does no arithmetic.
"""
import ast
import asyncio
import sys
import types
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch


class Config(dict):
    __getattr__ = dict.get


def tree(path):
    return ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))


def run(path, nodes, names):
    exec(compile("from __future__ import annotations\n" + ast.unparse(ast.fix_missing_locations(ast.Module(nodes, []))), str(path), "exec"), names)


def bare(path, wanted, **names):
    """Functions and classes of a file without their decorators and bases, and without the rest of it."""
    found = [n for n in tree(path) if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name in wanted]
    for n in found:
        n.decorator_list = []
        if isinstance(n, ast.ClassDef):
            n.bases = []
            for f in n.body:
                if isinstance(f, ast.FunctionDef):
                    f.decorator_list = [d for d in f.decorator_list if ast.unparse(d) == "staticmethod"]
    run(path, found, names)
    return [names[w] for w in wanted]


def branch(path, test, **names):
    """The first if statement of a file whose condition reads like test; it is run on every call."""
    found = next(n for n in tree(path) if isinstance(n, ast.If) and ast.unparse(n.test) == test)
    return lambda **given: (scope := {**names, **given}, run(path, [found], scope))[0]


def group_slices(run_one, rollouts, rewards):
    """Advantages of a function that cuts the batch into slices of one size, group by group."""
    sizes = {}
    for r in rollouts:
        sizes[r[0]] = sizes.get(r[0], 0) + 1
    out = [None] * len(rollouts)
    for key, n in sizes.items():
        at = [k for k, r in enumerate(rollouts) if r[0] == key]
        for k, value in zip(at, run_one([rewards[k] for k in at], n)):
            out[k] = float(value)
    return out


def prime_rl(checkout):
    """GRPOAlgorithm.score_group of prime-rl: f(rewards, usages, weights of the length penalty or None)."""
    source = Path(checkout) / "src" / "prime_rl" / "orchestrator" / "algo" / "grpo.py"
    got = {}
    names = dict(torch=torch, iter_trainable_traces=lambda episodes: ((e, e) for e in episodes), assign_advantages=lambda t, a: got.__setitem__(id(t), a))
    cls = next(n for n in tree(source) if isinstance(n, ast.ClassDef) and n.name == "GRPOAlgorithm")
    run(source, [n for n in cls.body if getattr(n, "name", "") == "score_group"], names)

    def advantages(rewards, usages, penalty):
        traces = [types.SimpleNamespace(reward=r, num_output_tokens=o, num_total_tokens=t, num_turns=n) for r, (o, t, n) in zip(rewards, usages)]
        weights = penalty and types.SimpleNamespace(num_output_tokens_weight=penalty[0], num_input_tokens_weight=penalty[1], num_turns_weight=penalty[2])
        asyncio.run(names["score_group"](types.SimpleNamespace(length_penalty=weights), traces))
        return [got[id(t)] for t in traces]

    return advantages


def prime_loss(checkout):
    """The weight of each token in compute_loss, at one policy and without its KL term."""
    source = Path(checkout) / "src" / "prime_rl" / "trainer" / "rl" / "loss.py"
    names = dict(torch=torch, LossInputs=types.SimpleNamespace, LossOutputs=types.SimpleNamespace)
    ratio, mean, default, compute = bare(source, ["compute_importance_ratio_and_mismatch_kl", "_safe_mean", "default_loss_fn", "compute_loss"], **names)
    config = Config(dppo_mask_high=0.2, dppo_mask_low=0.2, adv_tau=1.0, kl_tau=0.0)

    def weights(masks):
        logprobs = [torch.full((len(m),), -0.5, requires_grad=True) for m in masks]
        masks = [m.bool() for m in masks]
        loss, _ = compute(logprobs, [l.detach() for l in logprobs], None, [torch.ones(len(m)) for m in masks], masks, None, None, None,
                          lambda inputs: default(inputs, config), max(sum(int(m.sum()) for m in masks), 1), 1, 1)
        loss.backward()
        return [-l.grad for l in logprobs]

    return weights


def slime(checkout):
    """RolloutManager._post_process_rewards of slime: f(rewards of one group, its size, estimator)."""
    source = Path(checkout) / "slime" / "ray" / "rollout.py"
    (post,) = bare(source, ["_post_process_rewards"], torch=torch)

    def advantages(rewards, n, estimator="grpo"):
        args = Config(advantage_estimator=estimator, rewards_normalization=True, grpo_std_normalization=True, n_samples_per_prompt=n, rollout_batch_size=1)
        samples = [types.SimpleNamespace(get_reward_value=lambda _, r=r: r) for r in rewards]
        return post(types.SimpleNamespace(args=args, custom_reward_post_process_func=None), samples)[1]

    return advantages


def slime_returns(checkout):
    """get_reinforce_plus_plus_returns of slime: f(masks of responses, rewards, discount)."""
    sys.modules.setdefault("megatron", types.ModuleType("megatron"))
    core = sys.modules["megatron.core"] = types.ModuleType("megatron.core")
    core.mpu = types.SimpleNamespace(get_context_parallel_world_size=lambda: 1)
    _, make = bare(Path(checkout) / "slime" / "utils" / "ppo_utils.py", ["chunked_discounted_returns", "get_reinforce_plus_plus_returns"], torch=torch, F=torch.nn.functional)

    def returns(masks, rewards, discount):
        masks = [torch.tensor(m, dtype=torch.float64) for m in masks]
        lengths = [len(m) for m in masks]
        return make(torch.tensor(rewards), [torch.zeros(n) for n in lengths], masks, lengths, lengths, 0.0, discount)

    return returns


def slime_loss(source, denominators):
    """The weight of each token in the sum that get_sum_of_sample_mean makes."""
    parallel = types.SimpleNamespace(get_context_parallel_world_size=lambda: 1)
    (make,) = bare(source, ["get_sum_of_sample_mean"], torch=torch, mpu=parallel)

    def weights(masks, rollouts):
        lengths = [len(m) for m in masks]
        given = [lengths, lengths, masks]
        if denominators:
            whole = defaultdict(float)
            for r, m in zip(rollouts, masks):
                whole[r] += float(m.sum())
            given.append([torch.tensor(whole[r]) for r in rollouts])
        x = torch.ones(sum(lengths), requires_grad=True)
        make(*given)(x).backward()
        return list(x.grad.split(lengths))

    return weights


def trl(checkout):
    """GRPOTrainer's advantages, f(rewards of one group, its size), and its losses, by type."""
    source = Path(checkout) / "trl" / "trainer" / "grpo_trainer.py"
    (nanstd,) = bare(source.with_name("utils.py"), ["nanstd"], torch=torch)
    compare = branch(source, "self.multi_objective_aggregation == 'sum_then_normalize'", torch=torch, nanstd=nanstd)
    trainer = types.SimpleNamespace(multi_objective_aggregation="sum_then_normalize", scale_rewards="group", reward_weights=torch.ones(1))

    def advantages(rewards, n):
        scores = torch.tensor([[float("nan") if r is None else r] for r in rewards])
        scope = compare(self=trainer, rewards_per_func=scores, unscorable_mask=torch.isnan(scores).all(dim=1), device="cpu", num_generations=n)
        return torch.nan_to_num(scope["advantages"], nan=0.0)

    reduce = branch(source, "self.loss_type in ['grpo', 'sapo']", torch=torch)

    def weights(kind, masks, longest):
        losses = torch.ones_like(masks, requires_grad=True)
        trainer = types.SimpleNamespace(loss_type=kind, current_gradient_accumulation_steps=1.0, max_completion_length=longest, accelerator=types.SimpleNamespace(num_processes=1))
        reduce(self=trainer, per_token_loss=losses, mask=masks, mode="train", inputs={"num_items_in_batch": masks.sum()})["loss"].backward()
        return losses.grad

    return advantages, weights


def areal(peers):
    """AReaL's rewards before GAE, f(rewards of one group, its size): scaled, clipped and normalised by group."""
    source = Path(peers) / "areal"
    (norm,) = bare(source / "utils" / "data.py", ["Normalization"], torch=torch, np=np, dist=types.SimpleNamespace(is_initialized=lambda: False))
    path = source / "trainer" / "ppo" / "actor.py"
    steps = next(n for n in tree(path) if isinstance(n, ast.FunctionDef) and n.name == "_compute_advantages").body
    first = next(k for k, n in enumerate(steps) if ast.unparse(n) == "reward_score = data['rewards']")

    def advantages(rewards, n):
        config = Config(mean_level="group", mean_leave1out=False, std_level="group", std_unbiased=True, group_size=n, eps=1e-5)
        actor = types.SimpleNamespace(reward_bias=-0.5, reward_scaling=10.0, reward_clip=20.0, reward_norm=norm(config))
        scope = {"torch": torch, "self": actor, "data": {"rewards": torch.tensor(rewards)}}
        run(path, steps[first : first + 4], scope)
        return scope["reward_score"]

    return advantages


def areal_loss(peers):
    """The weight of each token in AReaL's actor loss, at one policy."""
    source = Path(peers) / "areal" / "utils" / "functional" / "functional.py"
    statement = next(ast.unparse(n) for n in tree(source) if isinstance(n, ast.Assign) and ast.unparse(n).startswith("pg_loss = torch.where(loss_mask, pg_loss, 0).sum()"))
    count = next(ast.unparse(n) for n in tree(source) if isinstance(n, ast.Assign) and ast.unparse(n).startswith("loss_mask_count ="))

    def weights(masks):
        losses = torch.ones_like(masks, requires_grad=True)
        scope = {"torch": torch, "loss_mask": masks.bool(), "pg_loss": losses}
        exec(count + "\n" + statement, scope)
        scope["pg_loss"].backward()
        return losses.grad

    return weights
