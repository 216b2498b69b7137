"""Decodes rank files with msgspec, typed as prime-rl types them, and prints them as JSON.

usage: read_primerl.py FILE...
       read_primerl.py --copy IN OUT    write IN again as prime-rl would
"""
import json
import sys

import msgspec


class MicroBatch(msgspec.Struct, array_like=True):
    input_ids: list[int]
    loss_mask: list[bool]
    advantages: list[float]
    inference_logprobs: list[float]
    position_ids: list[int]
    sequence_lengths: list[int]
    temperatures: list[float]
    env_names: list[str]
    seq_lens: list[int]
    ref_logprobs: list[float] | None = None
    routed_experts: tuple | None = None
    mm_kwargs: dict | None = None
    mm_token_type_ids: list[int] | None = None
    rl_weights: list[float] | None = None
    ce_weights: list[float] | None = None
    ref_kl_weights: list[float] | None = None


def read(path):
    return msgspec.msgpack.decode(open(path, "rb").read(), type=list[MicroBatch])


if sys.argv[1] == "--copy":
    open(sys.argv[3], "wb").write(msgspec.msgpack.encode(read(sys.argv[2])))
else:
    json.dump([msgspec.to_builtins(read(p)) for p in sys.argv[1:]], sys.stdout)
