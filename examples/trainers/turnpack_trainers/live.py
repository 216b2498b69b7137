"""Batches of a rollout service as they come, a group each, to train on each once.

    for seq, rows in live.from_service("http://127.0.0.1:8080", after=checkpoint.seq):
        train(rows)
        save(checkpoint, seq)   # with the weights; going on with the loop acknowledges the batch

A trainer that was killed starts with the number in its checkpoint: a batch that it trained on is not given again, one that it did not is.
"""
from __future__ import annotations

import http.client
import itertools
import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from .files import Expected, Row, check, one_tokenizer, read_rows

log = logging.getLogger("turnpack_trainers")


def _next(url: str, after: int, wait: float, expected: Expected | None, before: dict[str, str]) -> tuple[int, list[Row]]:
    """The batch after one, when it is there; before has what those before it said of themselves."""
    while True:
        try:
            with urllib.request.urlopen(f"{url}/batches?after={after}&wait={wait:g}s", timeout=wait + 60) as answer:
                body = answer.read()
        except (urllib.error.URLError, http.client.HTTPException, OSError) as e:
            if isinstance(e, urllib.error.HTTPError) and e.code < 500:
                raise
            log.warning("%s does not answer (%s), asking again", url, e)
            time.sleep(1)
            continue
        if not body:
            continue
        table = pa.ipc.open_stream(body).read_all()
        said = {k.decode(): v.decode() for k, v in table.schema.metadata.items()}
        rows, seq = table.to_pylist(), int(said["turnpack.group_seq"])
        name = Path(f"{url}/batches#{seq}")
        check(name, said, rows, expected or Expected.from_environment())
        one_tokenizer(name, said, "one before it", before)
        before.update(said)
        return seq, rows


def from_service(url: str, after: int = 0, wait: float = 30.0, expected: Expected | None = None) -> Iterator[tuple[int, list[Row]]]:
    """Asks the service for the batch after each, waits while there is none, and while the service starts again."""
    before: dict[str, str] = {}
    while True:
        after, rows = _next(url, after, wait, expected, before)
        yield after, rows
        acknowledge(url, after)


def take(url: str, after: int, until: int, wait: float = 30.0, expected: Expected | None = None) -> list[Row]:
    """The rows of the batches after one and up to another, for a step on several groups. Save the step, then acknowledge."""
    out: list[Row] = []
    before: dict[str, str] = {}
    while after < until:
        after, rows = _next(url, after, wait, expected, before)
        out += rows
    if after > until:
        raise ValueError(f"{url} has no batch {until}: the one after is {after}")
    return out


def acknowledge(url: str, seq: int, attempts: int = 60) -> None:
    """Tells the service that the batches up to seq are trained on and saved; telling it again does nothing."""
    for attempt in range(attempts):
        try:
            urllib.request.urlopen(urllib.request.Request(f"{url}/batches/ack", json.dumps({"seq": seq}).encode()), timeout=60).close()
            return
        except (urllib.error.URLError, http.client.HTTPException, OSError) as e:
            if attempt + 1 == attempts or isinstance(e, urllib.error.HTTPError) and e.code < 500:
                raise
            time.sleep(1)


def _due(index: Path, at: int, after: int) -> Iterator[tuple[dict[str, Any], int]]:
    """The batches after one, by their lines from a byte on, each with the byte after its line."""
    if index.exists():
        with index.open("rb") as lines:
            lines.seek(at)
            while (line := lines.readline()).endswith(b"\n"):
                if (batch := json.loads(line))["seq"] > after:
                    yield batch, lines.tell()


def from_folder(folder: str, after: int = 0, poll: float = 0.5, expected: Expected | None = None) -> Iterator[tuple[int, list[Row]]]:
    """Reads the batches that the service writes into its folder (--folder), as they get their names."""
    at = 0
    while True:
        due = list(itertools.islice(_due(Path(folder) / "batches.jsonl", at, after), 2))
        if not due or not (Path(folder) / due[0][0]["file"]).exists():
            if len(due) > 1:
                raise FileNotFoundError(f"{folder}: {due[0][0]['file']} was removed, and batch {after} is the last that was trained on")
            time.sleep(poll)
            continue
        batch, at = due[0]
        after = batch["seq"]
        yield after, read_rows(Path(folder) / batch["file"], expected)
