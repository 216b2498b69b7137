"""Reads the Parquet sets of `plumb import --to chat|sharegpt --parquet` with load_dataset, and
compares every row with the JSON Lines of the same dumps.

usage: read_chats.py LINES CHAT.parquet SHAREGPT.parquet
"""
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import load_dataset

TEXT = pa.string()
CALL = pa.struct([("id", TEXT), ("type", TEXT), ("function", pa.struct([("name", TEXT), ("arguments", TEXT)]))])
MESSAGE = pa.struct([("role", TEXT), ("content", TEXT), ("reasoning_content", TEXT), ("name", TEXT), ("tool_call_id", TEXT), ("tool_calls", pa.list_(CALL))])
TURN = pa.struct([("from", TEXT), ("value", TEXT), ("reasoning_content", TEXT)])
ROLES = {"human": "user", "gpt": "assistant", "observation": "tool", "system": "system", "developer": "developer"}


def same_type(a, b):
    if pa.types.is_list(a):
        return pa.types.is_list(b) and same_type(a.value_type, b.value_type)
    if pa.types.is_struct(a):
        return [f.name for f in a] == [f.name for f in b] and all(same_type(x.type, y.type) for x, y in zip(a, b))
    return a == b


def rows(path, column, kind):
    found = pq.read_schema(path).field(column).type
    assert same_type(found, pa.list_(kind)), found
    return load_dataset("parquet", data_files=path, split="train")


def content(message):
    c = message["content"]
    return "".join(p["text"] for p in c) if isinstance(c, list) else c


def check_chat(row, want):
    for m, x in zip(row["messages"], want["messages"], strict=True):
        assert (m["role"], m["content"]) == (x["role"], content(x)), (row["id"], m, x)
        for k in "reasoning_content", "name", "tool_call_id":
            assert m[k] == x.get(k), (row["id"], k)
        assert (m["tool_calls"] is None) == ("tool_calls" not in x), row["id"]
        for c, y in zip(m["tool_calls"] or [], x.get("tool_calls", []), strict=True):
            f, g = c["function"], y["function"]
            assert (c["id"], f["name"]) == (y.get("id"), g["name"]), (row["id"], c)
            assert f["arguments"] == g["arguments"] or json.loads(f["arguments"]) == g["arguments"], (row["id"], c)
    for k in "tools", "chat_template_kwargs":
        assert (row[k] and json.loads(row[k])) == want.get(k), (row["id"], k)
    for k in "resolved", "patch", "exit_status", "instance_id":
        assert row[k] == want.get(k), (row["id"], k)
    assert row["reward"] is None and "reward" not in want or abs(row["reward"] - want["reward"]) < 1e-6, row["id"]


def check_conversation(row, want):
    turns, last = iter(row["conversations"]), ""
    for x in want["messages"]:
        said, calls = content(x) or "", x.get("tool_calls", [])
        if said or "reasoning_content" in x or not calls or last == x["role"]:
            t = next(turns)
            assert (ROLES[t["from"]], t["value"], t["reasoning_content"]) == (x["role"], said, x.get("reasoning_content")), (row["id"], t)
        if calls:
            t = next(turns)
            assert t["from"] == "function_call", (row["id"], t)
            assert json.loads(t["value"]) == [{k: c["function"][k] for k in ("name", "arguments")} for c in calls], (row["id"], t)
        last = x["role"]
    assert next(turns, None) is None, row["id"]


def main():
    lines, chat, sharegpt = sys.argv[1:]
    with open(lines) as f:
        want = {r["id"]: r for r in map(json.loads, f)}
    n = 0
    for row in rows(chat, "messages", MESSAGE):
        check_chat(row, want[row["id"]])
        n += 1
    for row in rows(sharegpt, "conversations", TURN):
        check_conversation(row, want[row["id"]])
        n += 1
    print(n, "rows are the same as the lines of", len(want), "rollouts")


main()
