"""Megatron-Bridge dataset config over packs that export/megatron wrote (supervised training)."""
import glob
import math
import os

from megatron.bridge.data.builders.gpt_sft import GPTSFTDatasetConfig
from megatron.bridge.data.packing import PackedSequenceSpecs

from .files import require_complete


def whole(path):
    """path (a file, a glob or a folder), unless it has a file of a set whose writer has not ended or was killed."""
    for file in glob.glob(os.fspath(path), recursive=True):
        require_complete(os.path.join(file, "*") if os.path.isdir(file) else file)
    return path


def packed_dataset(train, pack_size, *, pad_multiple=1, metadata=None, validation=None, scratch="packed_scratch"):
    """train is a *.idx.parquet file, a glob or a folder of them; pack_size and pad_multiple as in megatron.Options.

    With metadata (the file that megatron.Write made) the shapes are fixed, as CUDA graphs need.
    """
    fixed = metadata is not None
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
