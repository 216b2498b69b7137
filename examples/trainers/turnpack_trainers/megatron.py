"""Megatron-Bridge over packs that export/megatron wrote (supervised training): the dataset's config, and a command that trains on it:

    torchrun --nproc-per-node GPUS -m turnpack_trainers.megatron --recipe llama32_1b_sft_config --train 'batch/*.idx.parquet' --pack-size N ...
"""
from __future__ import annotations

import argparse
import glob
import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from megatron.bridge.data.builders.gpt_sft import GPTSFTDatasetConfig
from megatron.bridge.data.packing import PackedSequenceSpecs

from .files import check_set, require_complete


def whole(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """path (a file, a glob or a folder), unless it has a file of a set whose writer has not ended or was killed, or that is
    of another tokenizer or policy than TURNPACK_TOKENIZER and the like say."""
    for file in glob.glob(os.fspath(path), recursive=True):
        require_complete(os.path.join(file, "*") if os.path.isdir(file) else file)
        check_set(file)
    return path


def merge_metadata(files: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> Path:
    """One metadata file for several steps, whose packs are read together: the largest shapes of all of them."""
    merged: list[dict[str, int]] = []
    for file in files:
        for i, entry in enumerate(json.loads(Path(file).read_text())):
            if i == len(merged):
                merged.append(dict(entry))
            for key, value in entry.items():
                merged[i][key] = min(merged[i].get(key, value), value) if key.startswith("min_") else max(merged[i].get(key, value), value)
    if not merged:
        raise ValueError(f"no metadata in {files}")
    Path(out).write_text(json.dumps(merged))
    return Path(out)


def packed_dataset(train: str, pack_size: int, *, pad_multiple: int = 1, metadata: str | None = None, validation: str | None = None,
                   scratch: str = "packed_scratch") -> Any:
    """train is a *.idx.parquet file, a glob or a folder of them; pack_size and pad_multiple as in megatron.Options.

    With metadata (the file that megatron.Write made, or a glob of those of several steps, which are merged into a file in
    scratch) the shapes are fixed, as CUDA graphs need.
    """
    fixed = metadata is not None
    if metadata is not None and glob.has_magic(metadata):
        os.makedirs(scratch, exist_ok=True)
        metadata = os.fspath(merge_metadata(sorted(glob.glob(metadata, recursive=True)), os.path.join(scratch, "merged.metadata.json")))
    specs = PackedSequenceSpecs(
        packed_sequence_size=pack_size,
        packed_train_data_path=whole(train),
        packed_val_data_path=validation and whole(validation),
        packed_metadata_path=metadata,
        pad_seq_to_mult=pad_multiple,
        pad_cu_seqlens=fixed,
    )
    return GPTSFTDatasetConfig(
        seq_length=pack_size,
        dataset_root=scratch,  # must exist in the config, needs no files
        do_validation=validation is not None,
        do_test=False,
        drop_last=False,  # what is missing of the last step is filled up with packs that train nothing
        enable_offline_packing=True,
        offline_packing_specs=specs,
        dataset_kwargs={"pad_seq_length_to_mult": math.lcm(16, pad_multiple), "pad_to_max_length": fixed},
    )


def written(train: str) -> dict[str, set[int]]:
    """The --seq-len and --pad-multiple that convert had, of all files."""
    said: dict[str, set[int]] = {"pack_size": set(), "pad_multiple": set()}
    for path in glob.glob(train, recursive=True):
        for file in sorted(Path(path).glob("*.idx.p*q*")) if os.path.isdir(path) else [path]:
            metadata = pq.read_schema(os.fspath(file)).metadata or {}
            for name, values in said.items():
                values |= {int(metadata[key]) for key in [b"turnpack." + name.encode()] if key in metadata}
    return said


def fits(config: Any, pack_size: int, pad_multiple: int) -> None:
    """Refuses settings under which Megatron-Bridge would train on other tokens than the packs say, or with another mean."""
    faults = []
    said = written(str(config.dataset.offline_packing_specs.packed_train_data_path))
    for name, flag, given in (("pack_size", "--seq-len", pack_size), ("pad_multiple", "--pad-multiple", pad_multiple)):
        if said[name] - {given}:
            faults.append(f"the packs were written with {flag} {', '.join(map(str, sorted(said[name])))}, not {given}")
    wanted = {"train.micro_batch_size": 1, "dataset.seq_length": pack_size, "dataset.enable_offline_packing": True, "model.calculate_per_token_loss": True,
              "ddp.average_in_collective": False, "dataset.drop_last": False, "dataset.max_train_samples": None, "dataset.offline_packing_specs.packed_sequence_size": pack_size}
    for name, value in wanted.items():
        at = config
        for part in name.split("."):
            at = getattr(at, part, None)
        if at != value:
            faults.append(f"{name}={at} does not fit packs: leave it out ({value})")
    for name, why in (("answer_only_loss", "trains prompts and tool output"), ("return_cu_seqlen", "lets a row see those before it in its pack")):
        if not (getattr(config.dataset, "dataset_kwargs", None) or {}).get(name, True):
            faults.append(f"dataset.dataset_kwargs.{name}=false {why}: leave it out")
    parts = config.model.context_parallel_size
    cut = 2 * parts if parts > 1 else 1
    if getattr(config.model, "sequence_parallel", False) and config.model.tensor_model_parallel_size > 1:
        cut = math.lcm(cut, parts * config.model.tensor_model_parallel_size)
    if pad_multiple % cut:
        faults.append(f"context and sequence parallelism cut sequences into {cut} parts: write the packs with convert --pad-multiple {math.lcm(cut, pad_multiple)}, and say so here")
    if faults:
        raise ValueError("; ".join(faults))


def settings(arguments: Sequence[str]) -> tuple[Any, bool]:
    """Megatron-Bridge's configuration of a recipe on the packs, and whether it is only to be shown."""
    from megatron.bridge import recipes
    from megatron.bridge.training.utils.omegaconf_utils import process_config_with_overrides
    given = argparse.ArgumentParser(prog="turnpack_trainers.megatron", description="Further arguments are KEY=VALUE of ConfigContainer.", allow_abbrev=False)
    given.add_argument("--recipe", required=True, help="name of a function of megatron.bridge.recipes, such as llama32_1b_sft_config")
    given.add_argument("--train", required=True, help="*.idx.parquet file, a glob or a folder of them")
    given.add_argument("--pack-size", type=int, required=True, help="--seq-len of convert")
    given.add_argument("--pad-multiple", type=int, default=1, help="that of convert")
    given.add_argument("--metadata", help="fixed shapes: the metadata file, or a glob of those of several steps")
    given.add_argument("--validation")
    given.add_argument("--scratch", default="packed_scratch")
    given.add_argument("--dry-run", action="store_true", help="show the configuration and train nothing")
    own, overrides = given.parse_known_args(arguments)
    unknown = [o for o in overrides if o.startswith("-") or "=" not in o]
    if unknown:
        given.error(f"neither a flag nor KEY=VALUE: {' '.join(unknown)}")
    make = getattr(recipes, own.recipe, None)
    if not callable(make):
        raise ValueError(f"megatron.bridge.recipes has no {own.recipe!r}")
    config = make()
    config.dataset = packed_dataset(own.train, own.pack_size, pad_multiple=own.pad_multiple, metadata=own.metadata, validation=own.validation, scratch=own.scratch)
    config.model.seq_length, config.train.micro_batch_size = own.pack_size, 1
    config.model.calculate_per_token_loss, config.ddp.average_in_collective = True, False  # the mean over trained tokens
    config = process_config_with_overrides(config, cli_overrides=overrides or None)
    fits(config, own.pack_size, own.pad_multiple)
    return config, own.dry_run


def main() -> None:
    config, dry = settings(sys.argv[1:])
    if dry:
        config.print_yaml()
        return
    from megatron.bridge.training.finetune import finetune
    from megatron.bridge.training.gpt_step import forward_step
    finetune(config, forward_step)


if __name__ == "__main__":
    main()
