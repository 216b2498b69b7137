"""Dumps through the command, the README's arguments and Megatron-Bridge's own training step, from its data loader over Megatron-Core's
schedule to the gradients that it hands its optimizer, each token's against one computed from the dump alone.
TURNPACK_MEGATRON_BRIDGE and TURNPACK_MEGATRON_LM name checkouts.

On a CPU, in one process: tensors meant for a GPU stay here, the model is a tensor of logits with Megatron-Core's loss over it, and the
optimizer leaves it as it is."""
import math
import shlex
import types
from functools import partial

import pytest

from kit import MODEL, as_of_python_3_12, cases, checkout, commands, near, patched, taken_in  # noqa: F401

torch = pytest.importorskip("torch", reason="SKIPPED: no torch in this Python")
pq = pytest.importorskip("pyarrow.parquet", reason="SKIPPED: no pyarrow in this Python")
batch = cases(["merged", "perstep", "merged-scores", "perstep-scores"])  # there are no advantages to give to steps
LENGTH, VOCABULARY, EOS = 32, 4096, 4089


class OnCPU(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cuda:
            return args[0]
        return func(*args, **{k: "cpu" if k == "device" and v == "cuda" else v for k, v in (kwargs or {}).items()})


@pytest.fixture(scope="module")
def megatron(taken_in, patched):  # noqa: F811
    bridge, core = checkout("TURNPACK_MEGATRON_BRIDGE", "Megatron-Bridge"), checkout("TURNPACK_MEGATRON_LM", "Megatron-LM")
    for module in ("einops", "transformers", "datasets", "omegaconf", "hydra", "wandb", "tensorboard"):
        pytest.importorskip(module, reason=f"SKIPPED: no {module} in this Python")
    as_of_python_3_12()
    taken_in(["megatron"], [bridge / "src", core], "transformer_engine", "modelopt", "diffusers", "megatron.energon")
    patched.setenv("WORLD_SIZE", "1")
    patched.setenv("RANK", "0")
    patched.setattr(torch.cuda, "current_device", lambda: "cpu")
    import megatron.bridge.recipes  # noqa: F401
    from megatron.bridge.data import loaders, utils
    from megatron.bridge.training import config, gpt_step, setup, state, train
    from megatron.bridge.training.tokenizers.tokenizer import build_tokenizer
    from megatron.core import num_microbatches_calculator, parallel_state, tensor_parallel
    from megatron.core.distributed import finalize_model_grads
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.process_groups_config import ProcessGroupCollection
    patched.setattr(train, "get_tensor_shapes_adjust_fn_for_distillation", lambda *a, **k: None)  # it asks modelopt
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    yield types.SimpleNamespace(**{k: v for k, v in locals().items() if k != "megatron"}, groups=ProcessGroupCollection.use_mpu_process_groups())
    parallel_state.destroy_model_parallel()
    torch.distributed.destroy_process_group()


class Logits(torch.nn.Module):
    """The logits of each micro-batch are weights of their own."""

    pre_process = post_process = True
    model_type = "gpt"

    def __init__(self, config, groups, loss):
        super().__init__()
        self.config, self.pg_collection, self.loss, self.seen = config, groups, loss, []

    def set_input_tensor(self, tensor):
        pass

    def zero_grad_buffer(self):
        self.seen = []

    def finish_grad_sync(self, force_all_reduce):
        pass

    def scale_gradients(self, factor):
        for _, logits in self.seen:
            logits.grad *= factor

    def forward(self, input_ids, position_ids, attention_mask, labels, packed_seq_params, padding_mask):
        logits = torch.randn(input_ids.shape[1], 1, VOCABULARY, requires_grad=True)
        ends, padded = packed_seq_params.cu_seqlens_q, packed_seq_params.cu_seqlens_q_padded
        self.seen.append(({"ids": input_ids[0].tolist(), "labels": labels[0].tolist(), "positions": position_ids[0].tolist(),
                           "ends": (ends if padded is None else padded).tolist(), "lengths": ends.diff().tolist()}, logits))
        return self.loss(logits.clone(), labels.transpose(0, 1)).transpose(0, 1)


def arguments(folder, packs, size, *more):
    """Those of the README's command, for an epoch of a folder in steps of size packs."""
    (command,) = commands("megatron")
    values = {"RECIPE": "vanilla_gpt_pretrain_config", "LENGTH": str(LENGTH), "CHECKPOINT": str(MODEL), "STEPS": str(math.ceil(packs / size)), "batch/": f"{folder}/"}
    for name, value in values.items():
        command = command.replace(name, value)
    here = ["model.num_layers=1", "model.hidden_size=8", "model.num_attention_heads=1", "tokenizer.tokenizer_type=HuggingFaceTokenizer", f"tokenizer.tokenizer_model={MODEL}",
            f"train.global_batch_size={size}", "dist.distributed_backend=gloo", "dataset.num_workers=0", "dataset.persistent_workers=false", "dataset.pin_memory=false"]
    return [*shlex.split(command.replace("…", "").split("turnpack_trainers.megatron ")[1]), *here, *more]


def steps(m, given):
    """The micro-batches of each step, with their gradients."""
    from turnpack_trainers import megatron as ours
    config, _ = ours.settings(given)
    m.config.runtime_config_update(config)
    m.num_microbatches_calculator.destroy_num_microbatches_calculator()
    m.num_microbatches_calculator.init_num_microbatches_calculator(0, None, config.train.global_batch_size, config.train.micro_batch_size, 1)
    state = m.state.GlobalState()
    state.cfg = config
    provider = m.setup._bind_dataset_provider_context(m.utils.get_dataset_provider(config.dataset), tokenizer=m.build_tokenizer(config.tokenizer), pg_collection=m.groups)
    model = Logits(config.model, m.groups, m.tensor_parallel.vocab_parallel_cross_entropy)
    config.model.finalize_model_grads_func = partial(m.finalize_model_grads, pg_collection=m.groups)
    still = types.SimpleNamespace(zero_grad=lambda: None, step=lambda *a, **k: (True, 0.0, 0))
    with OnCPU():
        iterator, _, _ = m.loaders.setup_data_iterators(config, state.train_state, 1, provider, m.groups.dp)
        step = m.train.prepare_forward_step_func(m.gpt_step.forward_step, state)
        for _ in range(config.train.train_iters):
            said = m.train.train_step(step, iterator, [model], still, still, state, m.groups, m.get_forward_backward_func(), None)[0]
            yield said["lm loss"].item(), model.seen


def rows(seen):
    """(ids of a row and what it is padded with, the tokens that attention sees of it, logits and gradients of all but the last) of each
    micro-batch."""
    for micro, logits in seen:
        for a, b, n in zip(micro["ends"], micro["ends"][1:], micro["lengths"]):
            ids = [*micro["ids"][a:b], *micro["labels"][b - 1:b]]
            if set(ids) <= {EOS}:
                assert not logits.grad[a:b].any(), "what fills up a pack trains nothing"
                continue
            assert micro["labels"][a:b] == ids[1:] and micro["positions"][a:b] == list(range(b - a)), "a row begins anew"
            yield ids, n, logits[a:b, 0].detach(), logits.grad[a:b, 0]


@pytest.mark.parametrize("flags", [[], ["--pad-multiple", "4"], ["--metadata"]], ids=["", "padded", "fixed"])
def test_megatron(batch, megatron, flags):
    shapes = "--metadata" in flags
    folder, want = batch.convert("megatron", "--seq-len", str(LENGTH), "--estimator", "none", "--groups-per-step", "2", *([] if shapes else flags))
    files = sorted(folder.glob("*.idx.parquet"))
    packs = sum(pq.read_metadata(f).num_rows for f in files)
    left, size = dict(want), packs - 1  # the second step is not full
    assert len(files) > 1 and size > 1
    for loss, seen in steps(megatron, arguments(folder, packs, size, *([*flags, str(folder / "*.metadata.json")] if shapes else flags), "--scratch", str(folder / "scratch"))):
        assert len(seen) == size
        here = []
        for ids, n, logits, gradient in rows(seen):
            keys = [k for k in left if list(k[1]) == ids[:len(k[1])] and set(ids[len(k[1]):]) <= {EOS} and not any(k == h[0] for h in here)]
            if not gradient.any() and not keys:
                continue  # a copy of a pack, which fills up the step
            key = max(keys, key=lambda k: len(k[1]))
            assert n == min(len(ids) - 1, len(key[1])), "attention sees the row and no padding"
            here.append((key, logits, gradient))
        total = sum(sum(left[key].mask) for key, _, _ in here)
        losses = []
        for key, logits, gradient in here:
            ids, mask = key[1], left.pop(key).mask
            probability = torch.softmax(logits, -1)
            for t in range(len(gradient)):
                trained = mask[t + 1] if t + 1 < len(ids) else 0
                label = torch.zeros(VOCABULARY)
                if trained:
                    label[ids[t + 1]] = 1
                    losses.append(-math.log(probability[t, ids[t + 1]]))
                assert torch.allclose(gradient[t], trained * (probability[t] - label) / total, atol=1e-7), (key, t)
        assert len(losses) == total > 0 and loss == pytest.approx(sum(losses) / total, rel=1e-5)
    assert not left


def test_settings_that_do_not_fit(batch, megatron):
    """Megatron-Bridge's own settings, of its own recipe."""
    from turnpack_trainers import megatron as ours
    folder, _ = batch.convert("megatron", "--seq-len", str(LENGTH), "--estimator", "none")
    given = arguments(folder, 2, 2)
    for more, why in ((["train.micro_batch_size=2"], "micro_batch_size"), (["dataset.drop_last=true"], "drop_last"), (["model.calculate_per_token_loss=false"], "calculate_per_token_loss"),
                      (["dataset.max_train_samples=1"], "max_train_samples"), (["model.context_parallel_size=2"], "--pad-multiple 4"), (["--pad-multiple", "2"], "written with --pad-multiple 1")):
        with pytest.raises(ValueError, match=why):
            ours.settings([*given, *more])
    with pytest.raises(ValueError, match="written with --seq-len 32"):
        ours.settings([a if a != str(LENGTH) else "64" for a in given])
