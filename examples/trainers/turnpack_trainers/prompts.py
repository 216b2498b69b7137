"""The prompts that verl takes beside an export file, a light row for each group.

    python -m turnpack_trainers.prompts EXPORT.parquet PROMPTS.parquet
"""
from __future__ import annotations

import functools
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from .files import Row, advantages_of_rows, read_rows


@functools.lru_cache(maxsize=2)
def load(path: str | os.PathLike[str]) -> dict[str, list[list[Row]]]:
    """{group_id: [[row, ...] per rollout]}, file order; `--target verl` has left aborted rollouts out."""
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in advantages_of_rows(read_rows(path)):
        rollouts = groups.setdefault(row["group_id"], {})
        rollouts.setdefault(row["rollout_id"], []).append(row)
    for group, rollouts in groups.items():
        for rollout, rows in rollouts.items():
            if len({r["advantage"] for r in rows}) > 1:
                raise ValueError(f"rollout {rollout!r} of group {group!r} has rows with different advantages, and verl gives all of them that of the last: "
                                 "use an estimator by rollout (convert --target verl refuses others)")
    return {g: list(r.values()) for g, r in groups.items()}


def write_prompts(export_file: str | os.PathLike[str], prompt_file: str | os.PathLike[str]) -> None:
    """One light row per group: verl copies every column into every row it queues."""
    path = os.path.abspath(export_file)  # workers of verl have other working folders
    table = [dict(prompt=[dict(role="user", content=g)], agent_name="turnpack", data_source="turnpack", __rollout_n__=len(r),
                  turnpack_file=path, turnpack_group=g) for g, r in load(path).items()]
    pq.write_table(pa.Table.from_pylist(table), os.fspath(prompt_file))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    write_prompts(*sys.argv[1:])
