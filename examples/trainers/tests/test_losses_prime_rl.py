"""Dumps through the command and prime-rl's own transport, data loader and loss (with its trainer's steps between, from
trainer/rl/train.py), each token's gradient against one computed from the dump alone: of the files that the command packs for two
ranks, and of rows that turnpack_trainers hands to prime-rl's packer. TURNPACK_PRIME_RL names a checkout.

Its trainer needs a GPU for each rank: here the ranks take turns, and the model is a tensor of logits."""
import math
import types

import pytest

from kit import RATIO, cases, checkout, logits_of, near, patched, slopes_of, taken_in  # noqa: F401

torch = pytest.importorskip("torch", reason="SKIPPED: no torch in this Python")
batch = cases()
RANKS, LENGTH = 2, 24


@pytest.fixture(scope="module")
def prime(taken_in):  # noqa: F811
    path = checkout("TURNPACK_PRIME_RL", "prime-rl")
    for module in ("pydantic_config", "msgspec", "zmq", "loguru", "jaxtyping", "beartype"):
        pytest.importorskip(module, reason=f"SKIPPED: no {module} in this Python")
    taken_in(["prime_rl"], [path / "packages/prime-rl-configs/src", path / "src"], "wandb")
    from prime_rl.configs.trainer import DefaultLossConfig
    from prime_rl.trainer.rl import data, loss
    from prime_rl.transports.rollouts import TransportConfig  # noqa: F401
    from prime_rl.transports.rollouts.filesystem import FileSystemMicroBatchReceiver
    return types.SimpleNamespace(data=data, loss=loss, config=DefaultLossConfig(), Receiver=FileSystemMicroBatchReceiver)


def wanted(prime, want):
    """The gradients: its token mean, and its pull to the recorded policy, which tokens of no advantage have as well."""
    total = sum(sum(w.mask) for w in want.values())
    return {key: [m * (-prime.config.adv_tau * RATIO * a + 2 * prime.config.kl_tau * math.log(RATIO)) / total for a, m in zip(w.advantages, w.mask)] for key, w in want.items()}


def trained(prime, folder):
    """{ids of a row: its gradients} of the step of a folder, over all ranks."""
    ranks = []
    for rank in range(RANKS):
        loader = object.__new__(prime.data.DataLoader)
        loader.receiver = prime.Receiver(folder, rank, 1)
        ranks.append(loader.get_batch())
        assert not loader.receiver.can_receive(), "all rows are of one step"
    assert len({len(r) for r in ranks}) == 1, "ranks take as many packs"
    packs = [p for r in ranks for p in r]
    scale = sum(int((p["loss_mask"] & (True if p["rl_weights"] is None else p["rl_weights"] != 0)).sum()) for p in packs)
    got = {}
    for pack in packs:
        assert pack["ce_weights"] is None and pack["ref_kl_weights"] is None and pack["input_ids"].shape[1] <= LENGTH
        ids, recorded, sizes = pack["input_ids"][0].tolist(), pack["inference_logprobs"][0].tolist(), pack["sequence_lengths"]
        policy = [p + math.log(RATIO) if m else 0.0 for p, m in zip(recorded, pack["loss_mask"][0].tolist())]
        # prime-rl divides logits by the temperatures of the file.
        logits = (logits_of(torch, ids, policy) * pack["temperatures"][0, :, None])[None].requires_grad_()
        labels = prime.loss.shift_tensor_left(pack["input_ids"])
        with torch.compiler.set_stance("force_eager"):
            logprobs = prime.loss.selective_log_softmax(logits / pack["temperatures"].unsqueeze(-1), labels)
        logprobs = prime.loss.shift_tensor_right(logprobs, pad_value=-1.0)

        def rows(values):
            return None if values is None else values.squeeze().split(sizes)

        prime.loss.compute_loss(trainer_logprobs=rows(logprobs), inference_logprobs=rows(pack["inference_logprobs"]), ref_logprobs=None, advantages=rows(pack["advantages"]),
                                loss_mask=rows(pack["loss_mask"]), rl_weights=rows(pack["rl_weights"]), ce_weights=None, ref_kl_weights=None,
                                rl_loss_fn=prime.loss.setup_rl_loss_fn(prime.config), rl_scale=scale, ce_scale=1, ref_kl_scale=1)[0].backward()
        slopes, at = slopes_of((logits.grad * pack["temperatures"].unsqueeze(-1))[0], ids, policy), 0
        for n in sizes:
            got.setdefault(tuple(ids[at:at + n]), []).append(slopes[at:at + n])
            at += n
    return got


def check(got, expect):
    assert any(any(slopes) for slopes in expect.values())
    for key, slopes in expect.items():
        (found,) = [g for g in got[key[1]] if g == near(slopes)] or [None]
        assert found, (key, slopes, got[key[1]])
        got[key[1]].remove(found)
    assert not any(any(slopes) for left in got.values() for slopes in left), "what fills up packs trains nothing"


@pytest.mark.parametrize("weights", ["none", "rollout-mean"])
def test_files(batch, prime, weights):
    """Those of --target prime-rl."""
    folder, want = batch.convert("prime-rl", "--ranks", str(RANKS), "--seq-len", str(LENGTH), "--weights", weights)
    expect = wanted(prime, want)
    if weights == "rollout-mean":  # prime-rl weighs the whole loss of a token
        total, rollouts = sum(sum(w.mask) for w in want.values()), len({key[0] for key in want})
        expect = {key: [s * total / want[key].of_rollout / rollouts for s in slopes] for key, slopes in expect.items()}
    check(trained(prime, folder), expect)


def test_rows(batch, prime, tmp_path):
    """Rows of Parquet files, packed and sent by prime-rl."""
    from turnpack_trainers import prime_rl as ours
    folder, want = batch.convert("none")
    ours.send_step(folder / "batch.parquet", tmp_path / "sent", 1, LENGTH, RANKS)
    check(trained(prime, tmp_path / "sent"), wanted(prime, want))
