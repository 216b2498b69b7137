"""Reads export files for a trainer, and refuses those that it would train wrongly on.

What a trainer expects is given as an Expected, or by environment variables:

    TURNPACK_TOKENIZER    model folder or digest (sha256:...) of the trainer's tokenizer
    TURNPACK_TEMPLATE     digest of its chat template
    TURNPACK_RECIPE       name or digest of the recipe that made the rows
    TURNPACK_TEMPERATURE  temperature that the trainer computes log probabilities at
    TURNPACK_MIN_VERSION  oldest policy version that trained tokens may have
    TURNPACK_WAIT         seconds to wait for a step that is not there yet
"""
from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

log = logging.getLogger("turnpack_trainers")
Row = dict[str, Any]
SCHEMA = "1"
RECORD = ".turnpack.json"  # of the run that made a batch
# Columns that a reader looks at and that are never null.
NEEDED = {"sample_id", "group_id", "rollout_id", "sample_index", "is_last", "prompt_len", "input_ids", "loss_mask", "reward", "status", "finish_reason", "temperature"}
NULL = dict.fromkeys(("logprobs", "weights", "advantages", "versions", "advantage", "metadata"))  # those that a file may lack


@dataclass(frozen=True)
class Expected:
    """What a file must say of itself; an empty value asks nothing."""

    tokenizer: str = ""
    template: str = ""
    recipe: str = ""
    min_version: int | None = None
    wait: float = 0.0
    temperature: float | None = None

    @staticmethod
    def from_environment() -> Expected:
        get = os.environ.get

        def number(name: str) -> float | None:
            try:
                return float(get(name, "")) if get(name) else None
            except ValueError:
                raise ValueError(f"{name}: {get(name)!r} is no number") from None

        oldest = number("TURNPACK_MIN_VERSION")
        return Expected(get("TURNPACK_TOKENIZER", ""), get("TURNPACK_TEMPLATE", ""), get("TURNPACK_RECIPE", ""),
                        None if oldest is None else int(oldest), number("TURNPACK_WAIT") or 0.0, number("TURNPACK_TEMPERATURE"))


def named_file(**step: int) -> str:
    """The file that TURNPACK_FILE names, with the number of the step in the place of {step} (or what the trainer calls it)."""
    text = os.environ.get("TURNPACK_FILE", "")
    mark = "".join(f"{{{name}}}" for name in step)
    if not text:
        raise ValueError("TURNPACK_FILE names no export file: set it to " + (f"one with {mark} for the number of a step, such as batch/data/step_{mark}.parquet" if step else "it, such as batch/batch.parquet"))
    try:
        path = text.format(**step)
    except (LookupError, ValueError):
        raise ValueError(f"TURNPACK_FILE={text!r}: " + (f"the number of a step is {mark}" if step else "one file is read, and nothing is put into its name")) from None
    if path == text and any(step.values()):
        log.warning("TURNPACK_FILE=%s has no %s: each step trains on the same rows", text, mark)
    return path


def tokenizer_digest(tokenizer: str) -> str:
    """The digest itself, or that of tokenizer.json in a model folder."""
    if tokenizer.startswith("sha256:"):
        return tokenizer
    path = Path(tokenizer) / "tokenizer.json"
    if not path.is_file():
        raise FileNotFoundError(f"TURNPACK_TOKENIZER: {tokenizer!r} is no digest (sha256:...) and holds no tokenizer.json")
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def _unfinished(path: Path) -> tuple[Path, dict[str, Any]] | None:
    """The folder of the set that path belongs to, with its progress, where its writer has not ended."""
    for folder in list(path.absolute().parents)[:3]:
        progress = folder / "progress.json"
        if progress.is_file():
            return None if (folder / "manifest.json").exists() else (folder, json.loads(progress.read_text()))
    return None


def require_complete(path: str | os.PathLike[str], live: bool = False) -> Path:
    """path, unless it belongs to a set whose writer has not ended or was killed; live takes the shards that are done."""
    path = Path(path)
    found = _unfinished(path)
    if found is None:
        return path
    folder, progress = found
    done = [folder / f["file"] for s in progress.get("shards") or [] for f in [s, *(s.get("others") or [])]]
    if live and path.absolute() in done:
        return path
    raise RuntimeError(f"{folder} holds a set that is not complete ({len(done)} of its files are): run the job that writes it again, "
                       "or set TURNPACK_WAIT where it is still written and steps are read as they come")


def wait_for(path: str | os.PathLike[str], seconds: float, poll: float = 0.5) -> Path:
    """path once it is there and whole."""
    path, end = Path(path), time.monotonic() + seconds
    while True:
        try:
            if path.exists():
                return require_complete(path, live=seconds > 0)
        except RuntimeError:
            if time.monotonic() >= end:
                raise
        if time.monotonic() >= end:
            raise FileNotFoundError(f"{path} did not come within {seconds:g} s: is the batch shorter than the training, or the job that writes it stopped? TURNPACK_WAIT sets the time")
        time.sleep(min(poll, max(0.0, end - time.monotonic())))


def torn(rows: list[Row]) -> list[str]:
    """Rollouts that do not have each of their rows once: rows are numbered, the last says so, and each says how many tokens all of them train."""
    rollouts: dict[str, list[Row]] = {}
    for row in rows:
        rollouts.setdefault(row["rollout_id"], []).append(row)

    def whole(of: list[Row]) -> bool:
        trained = sum(sum(r["loss_mask"]) for r in of)
        return sorted(r["sample_index"] for r in of) == list(range(len(of))) and sum(r["is_last"] for r in of) == 1 and all(r.get("rollout_mask_sum", trained) == trained for r in of)

    return [name for name, of in rollouts.items() if not whole(of)]


def in_order(rows: list[Row]) -> list[Row]:
    """Rows with those of a group together, and in it those of a rollout in their order, as trainers that count them take them; groups and rollouts stay as they come."""
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        groups.setdefault(row["group_id"], {}).setdefault(row["rollout_id"], []).append(row)
    return [row for rollouts in groups.values() for of in rollouts.values() for row in sorted(of, key=lambda r: int(r["sample_index"]))]


def advantages_of_rows(rows: list[Row]) -> list[Row]:
    """rows, for a trainer that reads one advantage of each: one that says more, or nothing, is refused. Steps in the metadata say it another way (openclaw)."""
    for row in rows:
        each, one = row.get("advantages"), row.get("advantage")
        if one is None:
            raise ValueError(f"row {row['sample_id']} has no advantage: convert with an estimator and the --target of this trainer")
        if each and not step_scores(row) and any(m and a != one for a, m in zip(each, row["loss_mask"])):
            raise ValueError(f"row {row['sample_id']} has other advantages in some tokens than {one:g}, which this trainer would give to all: convert with its --target, which says what it can take")
    return unweighted(rows)


def advantages_of_tokens(rows: list[Row], weights: bool = False) -> list[Row]:
    """rows, each with an advantage for each token, for a trainer that reads them."""
    for row in rows:
        if not row.get("advantages"):
            if row.get("advantage") is None:
                raise ValueError(f"row {row['sample_id']} has no advantage: convert with an estimator and the --target of this trainer")
            row["advantages"] = [row["advantage"] * m for m in row["loss_mask"]]
    return rows if weights else unweighted(rows)


def unweighted(rows: list[Row]) -> list[Row]:
    """rows, for a trainer that reads no weights."""
    for row in rows:
        if row.get("weights") and any(w != m for w, m in zip(row["weights"], row["loss_mask"])):
            raise ValueError(f"row {row['sample_id']} has loss weights, which this trainer does not read: convert with its --target, which puts those of --weights rollout-mean into the advantages where it can")
    return rows


def with_logprobs(rows: list[Row]) -> list[Row]:
    """rows, for a trainer that cannot compute the log probabilities of the policy that sampled them."""
    for row in rows:
        if not row.get("logprobs"):
            raise ValueError(f"row {row['sample_id']} has no log probabilities, which this trainer reads: record them while sampling, or train with one that computes its own (slime, verl, SkyRL, TRL)")
    return rows


def step_scores(row: Row) -> list[dict[str, Any]]:
    """The steps that the metadata of a row tells of, with their scores, spans and advantages."""
    steps: list[dict[str, Any]] | None = json.loads(row.get("metadata") or "{}").get("turnpack", {}).get("steps")
    return steps or []


def check(path: Path, said: dict[str, str], rows: list[Row], expected: Expected) -> None:
    """Refuses a file of another tokenizer, template, recipe or schema, and rows of an older policy."""
    faults = []
    if "turnpack.schema_version" not in said:
        log.warning("%s says nothing of itself: another tool wrote it", path)
    elif said.get("turnpack.schema_version") != SCHEMA:
        faults.append(f"schema version {said.get('turnpack.schema_version')!r}, this package reads {SCHEMA!r}")
    want = {"tokenizer": tokenizer_digest(expected.tokenizer) if expected.tokenizer else "", "template": expected.template}
    for what, digest in want.items():
        if digest and said.get("turnpack." + what, "") != digest:
            faults.append(f"it was made with the {what} {said.get('turnpack.' + what) or '(unknown)'}, the trainer has {digest}")
    if expected.recipe and expected.recipe not in (said.get("recipe"), said.get("recipe.digest")):
        faults.append(f"it was made by the recipe {said.get('recipe') or '(none)'}, the trainer expects {expected.recipe}")
    other = [r for r in rows if expected.temperature is not None and not abs(r["temperature"] - expected.temperature) <= 1e-6]
    if other:
        faults.append(f"row {other[0]['sample_id']} was sampled at the temperature {other[0]['temperature']:g}, the trainer computes at {expected.temperature:g}")
    if expected.min_version is not None:
        for row in rows:
            versions = [v for v, m in zip(row.get("versions") or (), row["loss_mask"]) if m]
            oldest = min(versions, default=-1)
            if any(row["loss_mask"]) and oldest < expected.min_version:
                faults.append(f"row {row['sample_id']} trains tokens of policy version {'unknown' if oldest < 0 else oldest}, {expected.min_version} is the oldest asked for")
                break
    if faults:
        raise ValueError(f"{path}: " + "; ".join(faults))


def unlike(rows: list[Row], temperature: float, setting: str) -> list[str]:
    """What to say of rows sampled at another temperature than a trainer computes at, nothing where there is none."""
    other = sorted({float(r["temperature"]) for r in rows if abs(r["temperature"] - temperature) > 1e-6})
    return [f"rows were sampled at the temperature {', '.join(f'{t:g}' for t in other)}, and {setting} is {temperature:g}: set it to theirs"] if other else []


def check_set(path: str | os.PathLike[str], expected: Expected | None = None) -> dict[str, Any]:
    """Refuses a set (a folder, or a file of one) by its manifest, whose files cannot say these things themselves: those of prime-rl and
    Megatron-Bridge. Returns the options of convert, where its record is there."""
    expected, path = expected or Expected.from_environment(), Path(path).absolute()
    folder = next((f for f in [path, *list(path.parents)[:3]] if (f / "manifest.json").is_file()), None)
    if folder is None:
        asked = [name for name, value in vars(expected).items() if name != "wait" and value not in ("", None)]
        if asked:
            raise ValueError(f"{path}: its set has no manifest.json yet, which would say its {', '.join(asked)}")
        return {}
    manifest = json.loads((folder / "manifest.json").read_text())
    try:
        record = json.loads((folder / RECORD).read_text())
    except FileNotFoundError:
        record = {}
    options: dict[str, Any] = record.get("options") or {}
    said = {"turnpack.schema_version": manifest.get("schema_version", SCHEMA), "turnpack.tokenizer": manifest.get("tokenizer", ""), "turnpack.template": manifest.get("template", ""),
            "recipe": options.get("Recipe", "")}
    rows: list[Row] = []
    for shard in manifest.get("shards") or []:
        versions = shard.get("versions") or {"min": -1}
        at = shard.get("temperature") or {"min": float("nan"), "max": float("nan")}
        rows += [{"sample_id": f"of {shard['file']}", "temperature": at[end], "versions": [int(versions["min"])], "loss_mask": [1]} for end in ("min", "max")]
    check(folder, said, rows, expected)
    tell_left_out(folder / RECORD)
    return options


@lru_cache(maxsize=None)
def _left_out(record: Path) -> str:
    """What the record beside a batch tells of rollouts that are not in it, "" for nothing."""
    try:
        summary = json.loads(record.read_text())["summary"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    counts = {**(summary.get("rollouts_without_rows") or {}), **(summary.get("target_left_out") or {})}
    text = ", ".join(f"{n} {why}" for why, n in counts.items())
    names = [r["rollout"] for r in summary.get("rollouts_without_rows_listed") or [] if r.get("rollout")]
    if text and names:
        text += f" ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"
    if text:
        log.warning("%s: left out when the batch was made: %s", record.parent, text)
    return text


def tell_left_out(path: Path) -> None:
    """Warns once of the rollouts that a batch was made without, in the folder of path or the one above its data."""
    for folder in list(path.absolute().parents)[:2]:
        if (folder / RECORD).is_file():
            _left_out(folder / RECORD)
            return


@lru_cache(maxsize=None)
def _made(listing: Path, changed: float) -> dict[str, tuple[int, str]]:
    """{file: (bytes, SHA-256)} of a record or a manifest."""
    try:
        said = json.loads(listing.read_text())
        files = [f for s in said.get("shards") or [] for f in [s, *(s.get("others") or [])]] + (said.get("files") or [])
        return {f["file"]: (f["bytes"], f["sha256"]) for f in files}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def intact(path: Path) -> bool:
    """Whether a file that the record or manifest of its batch names is as it was made; one that none names is."""
    for folder in list(path.absolute().parents)[:2]:
        for listing in (folder / RECORD, folder / "manifest.json"):
            if not listing.is_file():
                continue
            made = _made(listing, listing.stat().st_mtime).get(path.absolute().relative_to(folder).as_posix())
            if made is None:
                continue
            if made[0] != path.stat().st_size:
                return False
            digest = hashlib.sha256()
            with open(path, "rb") as f:
                while part := f.read(1 << 20):
                    digest.update(part)
            return digest.hexdigest() == made[1]
    return True


def _said(file: pq.ParquetFile) -> dict[str, str]:
    """What a file says of itself."""
    said = {k.decode(): v.decode() for k, v in (file.schema_arrow.metadata or {}).items() if not k.startswith(b"ARROW:")}
    return said | {k.decode(): v.decode() for k, v in (file.metadata.metadata or {}).items() if k != b"ARROW:schema"}


def one_tokenizer(path: Path, said: dict[str, str], other: str, of_other: dict[str, str]) -> None:
    """Refuses a file, or batch, of another tokenizer than one before it that the same training reads."""
    mine, others = said.get("turnpack.tokenizer"), of_other.get("turnpack.tokenizer")
    if mine and others and mine != others:
        raise ValueError(f"{path} was made with the tokenizer {mine}, and {other} with {others}: a trainer has one, so convert again, or keep the files of each in a folder of their own")


def like_siblings(path: Path, said: dict[str, str]) -> None:
    """Refuses a file whose first sibling, which differs in numbers of its name alone, has another tokenizer."""

    def numberless(name: str) -> str:
        return re.sub(r"\d+", "#", name)

    first = min(f.name for f in path.absolute().parent.iterdir() if numberless(f.name) == numberless(path.name))
    if first != path.name:
        try:
            with pq.ParquetFile(path.parent / first) as file:
                of_first = _said(file)
        except (pa.ArrowException, OSError):
            return  # its own reading says so
        one_tokenizer(path, said, f"{first} beside it", of_first)


def read_rows(path: str | os.PathLike[str], expected: Expected | None = None) -> list[Row]:
    """All rows of the file, in its order; a file that is not what the trainer expects is refused before its first batch."""
    expected = expected or Expected.from_environment()
    path = wait_for(path, expected.wait)
    try:
        with pq.ParquetFile(path) as file:
            said = _said(file)
            missing = NEEDED - set(file.schema_arrow.names)
            rows: list[Row] = [] if missing else [{**NULL, **row} for row in file.read().to_pylist()]
    except (pa.ArrowException, OSError) as e:
        raise ValueError(f"{path} cannot be read as Parquet ({e}): name an export file, or convert again with --force") from e
    if "turnpack.schema_version" in said and not intact(path):
        raise ValueError(f"{path} is not as convert made it, by the digest beside it: convert again with --force, or keep what you changed under another name")
    if missing:
        raise ValueError(f"{path} is no export file, or lost columns: {', '.join(sorted(missing))}")
    if not rows:
        raise ValueError(f"{path} holds no row")
    check(path, said, rows, expected)
    like_siblings(path, said)
    for rollout in torn(rows):
        raise ValueError(f"{path}: rows of rollout {rollout} were filtered away or come twice, and the others have weights and ends for all of them: filter whole rollouts")
    there, rows = rows, in_order(rows)
    if any(a is not b for a, b in zip(there, rows)):
        log.warning("%s: rows of a rollout or group stand apart and are put together", path)
    tell_left_out(path)
    rollouts = {(r["group_id"], r["rollout_id"]) for r in rows}
    log.info("%s: %d rows, %d rollouts, %d groups", path, len(rows), len(rollouts), len({g for g, _ in rollouts}))
    return rows


def write_train_logprobs(path: str | os.PathLike[str], logprobs: list[list[float]], out: str | os.PathLike[str]) -> None:
    """The file with the log probabilities that a trainer computed before its step, one list a row and a value a token, as the column
    train_logprobs: turnpack audit and view compare them with those recorded."""
    with pq.ParquetFile(os.fspath(path)) as file:
        table = file.read()
    lengths = [len(ids or ()) for ids in table.column("input_ids").to_pylist()]
    if list(map(len, logprobs)) != lengths:
        raise ValueError(f"{path}: log probabilities are needed for each token of {len(lengths)} rows, in their order")
    values = pa.array(logprobs, pa.list_(pa.field("element", pa.float32(), nullable=False)))
    pq.write_table(table.append_column("train_logprobs", values), os.fspath(out), compression="zstd", store_schema=True)
