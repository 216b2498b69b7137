"""Times pyarrow's writer and reader on the rows of an export file, one thread.

usage: bench_parquet.py FILE
"""
import io
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq

LISTS = ["loss_mask", "weights", "advantages", "versions"]
THREE = ["input_ids", "loss_mask", "logprobs"]


def write(table, compression, level=None):
    dictionary = [c + ".list.element" for c in LISTS if c in table.column_names]
    dictionary += [f.name for f in table.schema if f.type == pa.string() and f.name not in ("sample_id", "metadata")]
    split = [c + ".list.element" for c in ["logprobs"] if c in table.column_names]
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=64, compression=compression, compression_level=level, use_dictionary=dictionary,
                   use_byte_stream_split=split, data_page_size=8 << 20, write_statistics=False)
    return out


def main(path):
    pa.set_cpu_count(1)
    table = pq.read_table(path)
    n = table["input_ids"].combine_chunks().flatten().__len__()
    for name, t, compression, level in [("ids+mask+logprobs/none", table.select(THREE), "none", None), ("ids+mask+logprobs/zstd", table.select(THREE), "zstd", 3),
                                        ("all/zstd", table, "zstd", 3), ("all/zstd9", table, "zstd", 9)]:
        times = []
        for _ in range(5):
            at = time.perf_counter()
            out = write(t, compression, level)
            times.append(time.perf_counter() - at)
        size = len(out.getvalue())
        print(f"pyarrow {pa.__version__} write {name:24s} {n / min(times) / 1e6:7.1f} Mtok/s best, {n / sorted(times)[2] / 1e6:7.1f} median, {size / n:.3f} B/tok")
    times = []
    for _ in range(5):
        at = time.perf_counter()
        pq.read_table(out, use_threads=False)
        times.append(time.perf_counter() - at)
    print(f"pyarrow {pa.__version__} read  all/zstd9 {n / min(times) / 1e6:7.1f} Mtok/s best")


if __name__ == "__main__":
    main(sys.argv[1])
