"""Writes random tables with pyarrow, polars and duckdb, and what they hold.

usage: write_tables.py DIR COUNT [SEED]

Tables have columns of random types. N.parquet has them under a random codec, page version, encoding, page and row group
size, by any of the three; N.arrow (a file) and N.arrows (a stream) by pyarrow, between columns of types that nobody reads.
N.json says what must be read: per column, all row groups together, list lengths (-1 for null) or null marks, how many
elements are null, and the values that are there. Numbers are their bits, so that floats compare exactly.
"""
import json
import random
import struct
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

DIR, COUNT = Path(sys.argv[1]), int(sys.argv[2])
rand = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
TYPES = {"bool": pa.bool_(), "int8": pa.int8(), "int32": pa.int32(), "int64": pa.int64(), "float": pa.float32(), "double": pa.float64(), "text": pa.string()}
WORDS = ["", "a", "stop", "length", "grüppe", "组", "\U0001f600" * 40, "x" * 3000]
ENCODINGS = {"int32": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"], "int64": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"], "float": ["BYTE_STREAM_SPLIT"],
             "double": ["BYTE_STREAM_SPLIT"], "text": ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"], "bool": ["RLE"]}


def value(kind, few):
    if kind == "bool":
        return rand.random() < 0.5
    if kind == "text":
        return rand.choice(WORDS[:6]) if few else "".join(rand.choices("abcä", k=rand.randint(0, 30)))
    if kind in ("float", "double"):
        v = rand.choice([0.0, -0.0, 1.5, float("inf"), -1e-30]) if few else rand.uniform(-9, 9)
        return struct.unpack("<f", struct.pack("<f", v))[0] if kind == "float" else v
    bits = {"int8": 8, "int32": 32, "int64": 64}[kind]
    return rand.randint(-4, 4) if few else rand.randint(-(1 << bits - 1), (1 << bits - 1) - 1)


def column(kind, rows):
    """Rows of values, in runs or not, of few values or many."""
    few, runs, nulls = rand.random() < 0.5, rand.random() < 0.5, rand.choice([0, 0, 0.1, 0.6, 1])
    shape = rand.choice(["scalar", "list", "list", "list of null"])
    last = value(kind, few)

    def one():
        nonlocal last
        if not runs or rand.random() < 0.05:
            last = value(kind, few)
        return last

    def row():
        if nulls and rand.random() < nulls:
            return None
        if shape == "scalar":
            return one()
        return [None if shape == "list of null" and rand.random() < 0.2 else one() for _ in range(rand.choice([0, 1, 2, 8, 9, 70]))]

    t = TYPES[kind]
    field = t if shape == "scalar" else pa.list_(pa.field("element", t, nullable=shape != "list"))
    return pa.field("", field, nullable=bool(nulls) or rand.random() < 0.5), [row() for _ in range(rows)]


def bits(kind, v):
    if kind == "float":
        return struct.unpack("<i", struct.pack("<f", v))[0]
    return struct.unpack("<q", struct.pack("<d", v))[0] if kind == "double" else v


def expected(kind, field, rows):
    out = {"kind": kind, "list": pa.types.is_list(field.type), "null_elements": 0, "lens": [], "nulls": [], "bools": [], "numbers": [], "texts": []}
    to = {"bool": out["bools"], "text": out["texts"]}.get(kind, out["numbers"])
    for row in rows:
        if not out["list"]:
            out["nulls"].append(row is None)
            to += [] if row is None else [bits(kind, row)]
            continue
        there = [v for v in row or [] if v is not None]
        out["lens"].append(-1 if row is None else len(there))
        out["null_elements"] += len(row or []) - len(there)
        to += [bits(kind, v) for v in there]
    return out


def by_pyarrow(table, kinds, path):
    o = {"compression": rand.choice(["none", "snappy", "gzip", "brotli", "zstd", "lz4"]), "data_page_version": rand.choice(["1.0", "2.0"]),
         "version": rand.choice(["1.0", "2.4", "2.6"]), "write_page_checksum": rand.random() < 0.5, "data_page_size": rand.choice([1, 100, 5000, None]),
         "write_batch_size": rand.choice([1, 7, 1024]), "row_group_size": rand.choice([1 + len(table) // 3, 7, None]),
         "use_compliant_nested_type": rand.random() < 0.7, "store_schema": rand.random() < 0.5, "write_page_index": rand.random() < 0.5}
    if rand.random() < 0.5:
        o |= {"dictionary_pagesize_limit": rand.choice([10, 1 << 20])}
    else:
        o |= {"use_dictionary": False, "column_encoding": {f.name + (".list.element" if pa.types.is_list(f.type) else ""): rand.choice(["PLAIN"] + ENCODINGS.get(k, []))
                                                          for f, k in zip(table.schema, kinds)}}
    pq.write_table(table, path, **o)
    return o


def by_polars(table, _, path):
    o = {"compression": rand.choice(["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"]), "statistics": rand.random() < 0.5,
         "row_group_size": rand.choice([None, 100]), "data_page_size": rand.choice([None, 1000])}
    pl.from_arrow(table).write_parquet(path, **o)
    return o


def by_duckdb(table, _, path):
    o = {"compression": rand.choice(["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw"]), "parquet_version": rand.choice(["v1", "v2"]), "row_group_size": rand.choice([2048, 122880])}
    duckdb.sql(f"copy (select * from \"table\") to '{path}' (format parquet, {', '.join(f'{k} {v}' for k, v in o.items())})")
    return o


def strange(rows):
    """A column of a type that is not read, with as many buffers of its own."""
    texts = [rand.choice(["a", "bc" * 20, None]) for _ in range(rows)]
    numbers = [rand.choice([None, 1, 2]) for _ in range(rows)]
    return rand.choice([
        lambda: pa.array(texts).dictionary_encode(), lambda: pa.array(texts, pa.large_string()), lambda: pa.array(texts, pa.string_view()), lambda: pa.nulls(rows),
        lambda: pa.array([n and {"x": n, "y": "z"} for n in numbers], pa.struct({"x": pa.int8(), "y": pa.string()})), lambda: pa.array([n and [[n], None] for n in numbers], pa.list_(pa.list_(pa.int64()))),
        lambda: pa.array([n and [("k", n)] for n in numbers], pa.map_(pa.string(), pa.int32())), lambda: pa.array([n and [n, n] for n in numbers], pa.list_(pa.int16(), 2)),
        lambda: pa.array(numbers, pa.timestamp("s")), lambda: pa.array([n and [n] for n in numbers], pa.large_list(pa.float16())),
        lambda: pa.array([n and [n] for n in numbers], pa.list_view(pa.float32())), lambda: pa.array([n and b"1234" for n in numbers], pa.binary(4)),
        lambda: pa.UnionArray.from_sparse(pa.array([0] * rows, pa.int8()), [pa.array(numbers, pa.int32())]),
        lambda: pa.UnionArray.from_dense(pa.array([0] * rows, pa.int8()), pa.array(range(rows), pa.int32()), [pa.array(numbers, pa.int32())]),
        lambda: pa.RunEndEncodedArray.from_arrays(pa.array([rows] if rows else [], pa.int32()), pa.array([1] if rows else [])),
    ])()


def arrow(table, base):
    """Written by pyarrow as a file and as a stream, in batches that may be slices of others."""
    for i in range(rand.randint(0, 3)):
        table = table.add_column(rand.randint(0, len(table.columns)), f"strange{i}", strange(len(table)))
    o = {"compression": rand.choice([None, "lz4", "zstd"])}
    size = rand.choice([1, 7, None]) if len(table) < 500 else rand.choice([500, None])
    for ext, new in (("arrow", pa.ipc.new_file), ("arrows", pa.ipc.new_stream)):
        with new(f"{base}.{ext}", table.schema, options=pa.ipc.IpcWriteOptions(**o)) as w:
            w.write_table(table, max_chunksize=size)
    return f"{o} in batches of {size}: {table.schema}"


def main():
    for n in range(COUNT):
        rows, fields, data, want, kinds = rand.choice([0, 1, 9, 200, 3000]), [], [], {}, []
        for i in range(rand.randint(1, 6)):
            kind = rand.choice(list(TYPES))
            field, values = column(kind, rows)
            fields, data, kinds = fields + [field.with_name(f"c{i}")], data + [values], kinds + [kind]
            want[f"c{i}"] = expected(kind, field, values)
        table = pa.table([pa.array(v, f.type) for v, f in zip(data, fields)], schema=pa.schema(fields))
        by = rand.choice([by_pyarrow, by_pyarrow, by_polars, by_duckdb])
        options = by(table, kinds, str(DIR / f"{n}.parquet"))
        said = arrow(table, DIR / str(n))
        said = {"parquet": f"{by.__name__} {options} {table.schema}", "arrow": said, "arrows": said}
        (DIR / f"{n}.json").write_text(json.dumps({"by": said, "columns": want}))


main()
