"""Megatron-Bridge dataset config over packs that export/megatron wrote (supervised training)."""
from __future__ import annotations

import glob
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from megatron.bridge.data.builders.gpt_sft import GPTSFTDatasetConfig
from megatron.bridge.data.packing import PackedSequenceSpecs

from .files import require_complete


def whole(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """path (a file, a glob or a folder), unless it has a file of a set whose writer has not ended or was killed."""
    for file in glob.glob(os.fspath(path), recursive=True):
        require_complete(os.path.join(file, "*") if os.path.isdir(file) else file)
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
        enable_offline_packing=True,
        offline_packing_specs=specs,
        dataset_kwargs={"pad_seq_length_to_mult": math.lcm(16, pad_multiple), "pad_to_max_length": fixed},
    )
