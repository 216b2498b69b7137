"""Writes the Parquet and Arrow fixtures of rollout/traj with pyarrow, and beside each the
same rows as JSON Lines: python parquet_fixtures.py FOLDER

The layouts are those of published data sets of trajectories; the content is made up.
"""

import datetime
import decimal
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}}}}


def conversation(i):
    def message(role, content, calls=None, answers=None):
        return {"role": role, "content": content, "tool_calls": calls, "tool_call_id": answers, "name": None}

    call = {"id": f"c{i}", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"cmd": f"ls {i}"})}}
    return [
        message("system", "You are a helper."),
        message("user", f"Fix issue {i} \u00e9\U0001f600\n\t\"quoted\" \\ \x07"),
        message("assistant", None, [call]),
        message("tool", "a.go\nb.go", answers=f"c{i}"),
        message("assistant", "done", []),
    ]


def main(folder):
    def save(name, rows, schema=None, **how):
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / f"{name}.parquet", store_schema=False, **how)
        with open(folder / f"{name}.jsonl", "w") as out:
            for row in rows:
                out.write(json.dumps(row) + "\n")

    def save_arrow(name, rows, writer, compression=None):
        table = pa.Table.from_pylist(rows)
        with writer(str(folder / f"{name}.arrow"), table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as out:
            out.write_table(table, max_chunksize=3)

    rows = [
        {"trajectory_id": f"t{i}", "instance_id": f"org__repo-{i // 2}", "resolved": i % 2, "trajectory": conversation(i), "tools": json.dumps([TOOL]), "model_patch": "diff", "exit_status": "submitted"}
        for i in range(7)
    ]
    save("swe-rebench-openhands", rows, row_group_size=3)  # nebius
    save_arrow("swe-rebench-openhands", rows, pa.ipc.new_stream)  # as save_to_disk of datasets
    save("small-pages", rows, row_group_size=5, data_page_version="2.0", compression="zstd", use_dictionary=False, data_page_size=64)
    save("old-lists", rows, compression="gzip", use_compliant_nested_type=False)
    save("swe-smith", [{"messages": json.dumps(conversation(i)), "instance_id": "o", "resolved": bool(i), "model": "m", "traj_id": f"x{i}", "patch": "diff"} for i in range(2)])
    tools = [
        {"type": "function", "function": {"name": n, "parameters": {"type": "object", "properties": {"path": None, "cmd": None, n: {"type": "string"}}}}}
        for n in ("path", "cmd")
    ]
    save_arrow("swe-gym", [{"instance_id": "i", "run_id": f"r{i}", "resolved": True, "messages": conversation(i), "tools": tools, "test_result": {"git_patch": "d", "report": {"resolved": True}}} for i in range(2)], pa.ipc.new_file, "lz4")
    save("swe-gym", [{"instance_id": "i", "run_id": f"r{i}", "resolved": True, "messages": conversation(i), "tools": tools, "test_result": {"git_patch": "d", "report": {"resolved": True}}} for i in range(2)])
    save("openthoughts-agent", [
        {"conversations": [{"content": "q", "role": "user"}, {"content": "a", "role": "assistant"}][: 2 + 2 * i] + [{"content": "r", "role": "user"}, {"content": "b", "role": "assistant"}][: 2 * i],
         "agent": "terminus-2", "model": "m", "model_provider": "p", "date": "d", "task": "t1", "episode": f"episode-{i}", "run_id": "r", "trial_name": "t1__x"} for i in range(2)])
    save("nemotron", [{"uuid": "u", "license": "l", "used_in": ["s"], "tools": [], "messages": [
        {"role": "system", "content": "", "reasoning_content": None}, {"role": "user", "content": "q", "reasoning_content": None},
        {"role": "assistant", "content": "a", "reasoning_content": "why"}], "reasoning": "on"}])
    save("sharegpt", [{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "source": "s"}])
    save("swe-agent-nebius", [{"instance_id": "i", "model_name": "m", "target": True, "trajectory": [
        {"role": "system", "text": None, "system_prompt": "s", "mask": False, "cutoff_date": "x"},
        {"role": "user", "text": "q", "system_prompt": None, "mask": False, "cutoff_date": None},
        {"role": "ai", "text": "a", "system_prompt": None, "mask": True, "cutoff_date": None}],
        "exit_status": "submitted", "generated_patch": "d", "eval_logs": "l"}])
    types = pa.table({
        "m": pa.array([[("k", 1), ("l", 2)], []], type=pa.map_(pa.string(), pa.int64())), "p": pa.array([[(1, "x")], None], type=pa.map_(pa.int32(), pa.string())),
        "b": pa.array([b"\xff\x00", b"abc"]), "ts": pa.array([datetime.datetime(2024, 1, 1)] * 2),
        "d": pa.array([decimal.Decimal("-1.50"), decimal.Decimal("0.01")]), "f": pa.array([float("nan"), 1e300]), "h": pa.array([1.5, -2.0], type=pa.float16()),
        "ll": pa.array([[[1, 2], [], None], None], type=pa.list_(pa.list_(pa.int32()))), "u": pa.array([2**64 - 1, 0], type=pa.uint64()),
        "fb": pa.array([b"ab", b"cd"], type=pa.binary(2)), "e": pa.array([{"x": None}, None], type=pa.struct([("x", pa.int8())])),
        "i": pa.array([1, None], type=pa.int8()), "s": pa.array(["a", "b"]).dictionary_encode(), "none": pa.nulls(2)})
    pq.write_table(types, folder / "types.parquet", store_schema=False)
    # Sorts of Arrow that Parquet has none of, for which the rows are the same.
    for name, kind in (("b", pa.large_binary()), ("ll", pa.large_list(pa.large_list(pa.int32()))), ("ts", pa.timestamp("us"))):
        types = types.set_column(types.schema.get_field_index(name), name, types[name].cast(kind))
    with pa.ipc.new_stream(str(folder / "types.arrow"), types.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write_table(types.slice(0, 1))
        out.write_table(types.slice(1))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
