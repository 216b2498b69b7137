"""Trains prime-rl on the rank files of a folder, once they fit its settings:

    torchrun --nproc-per-node RANKS -m turnpack_trainers.prime_rl_main --output-dir batch --rollout-transport.type filesystem --max-steps STEPS ...

Rank files say nothing of tokenizer, temperature and policy: their set's manifest does.
"""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .files import Expected, check_set, require_complete


def fits(config: Any, processes: int) -> None:
    """Refuses settings by which prime-rl would train on other files or other rows than those of the folder, or wait for ones that nobody writes."""
    folder, expected = Path(config.output_dir), Expected.from_environment()
    steps = sorted(folder.glob("rollouts/step_*"), key=lambda s: int(s.name.removeprefix("step_")))
    if not steps:
        raise FileNotFoundError(f"{folder} has no rollouts/step_1: --output-dir is the folder that convert --target prime-rl wrote")
    ranks = len(list(steps[0].glob("rank_*.bin")))
    if expected.wait <= 0:
        require_complete(steps[0] / "rank_0.bin")
    options = check_set(steps[0] / "rank_0.bin", expected)
    faults = []
    if config.data.fake is not None:
        faults.append("data.fake trains on random tokens: leave it out")
    if config.rollout_transport.type != "filesystem":
        faults.append("set --rollout-transport.type filesystem, which reads the files")
    if config.max_steps is None or (config.max_steps > len(steps) and expected.wait <= 0):
        faults.append(f"set --max-steps to {len(steps)}, the steps of the folder: prime-rl waits for the one after without an end")
    if processes != ranks * config.model.cp:
        faults.append(f"the files are of {ranks} ranks, and {processes} processes with model.cp={config.model.cp} read those of {processes // config.model.cp}: start {ranks * config.model.cp}")
    if options.get("SeqLen", 0) > config.model.seq_len:
        faults.append(f"rows were packed to --seq-len {options['SeqLen']}, and model.seq-len is {config.model.seq_len}: set it to that")
    if faults:
        raise ValueError(f"{folder}: " + "; ".join(faults))


def main() -> None:
    from prime_rl.configs.trainer import TrainerConfig
    from prime_rl.utils.config import cli
    config = cli(TrainerConfig)
    fits(config, int(os.environ.get("WORLD_SIZE", "1")))
    from prime_rl.trainer.rl.train import train
    train(config)


if __name__ == "__main__":
    main()
