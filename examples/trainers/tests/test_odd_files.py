"""Files that other tools changed, that are damaged, or that say more than a trainer reads, and variables that name none."""
import hashlib
import json
import sys
import types
from unittest.mock import MagicMock

import pytest

pa = pytest.importorskip("pyarrow", reason="SKIPPED: no pyarrow in this Python")
import pyarrow.parquet as pq  # noqa: E402

from test_package import ROWS, slime, write  # noqa: E402, F401  # slime is a fixture
from turnpack_trainers import files  # noqa: E402


def test_rows_that_another_tool_changed(tmp_path, caplog):
    """Rows that stand apart are put together; a file that lost columns, or all rows, is refused by name."""
    path = write(tmp_path / "shuffled.parquet", [ROWS[1], ROWS[3], ROWS[2], ROWS[0]])
    assert files.read_rows(path, files.Expected()) == [ROWS[0], ROWS[1], ROWS[2], ROWS[3]]
    assert "are put together" in caplog.text
    pq.write_table(pq.read_table(path).drop_columns(["temperature", "is_last"]), path)
    with pytest.raises(ValueError, match="lost columns: is_last, temperature"):
        files.read_rows(path, files.Expected())
    pq.write_table(pq.read_table(write(path, ROWS)).drop_columns(["weights", "advantages", "versions", "metadata"]), path)
    assert files.read_rows(path, files.Expected()) == [{**r, "versions": None} for r in ROWS]
    pq.write_table(pq.read_table(write(path, ROWS)).slice(0, 0), path)
    with pytest.raises(ValueError, match="holds no row"):
        files.read_rows(path, files.Expected())


@pytest.mark.parametrize("listing", [".turnpack.json", "manifest.json"])
def test_files_that_are_damaged(tmp_path, listing):
    """A file that is not as it was made is refused, whether its bytes can still be read or not; one that another tool wrote anew says nothing of itself."""
    path = write(tmp_path / "data" / "step_0.parquet", ROWS)
    made = {"file": "data/step_0.parquet", "bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    (tmp_path / listing).write_text(json.dumps({"files": [made]} if listing.startswith(".") else {"shards": [made]}))
    assert files.read_rows(path, files.Expected()) == ROWS
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    assert files.read_rows(path, files.Expected()) == ROWS
    write(path, ROWS[:3])
    with pytest.raises(ValueError, match="not as convert made it"):
        files.read_rows(path, files.Expected())
    whole = path.read_bytes()
    for damaged in (whole[:-10], whole[:20], b""):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="step_0.parquet cannot be read as Parquet"):
            files.read_rows(path, files.Expected())
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        files.read_rows(tmp_path, files.Expected())


def test_variables_that_say_nothing(monkeypatch, caplog):
    monkeypatch.delenv("TURNPACK_FILE", raising=False)
    with pytest.raises(ValueError, match=r"step_\{rollout_id\}.parquet"):
        files.named_file(rollout_id=0)
    monkeypatch.setenv("TURNPACK_FILE", "a/step_{step}.parquet")
    assert files.named_file(step=3) == "a/step_3.parquet"
    for step, why in (({"rollout_id": 3}, r"is \{rollout_id\}"), ({}, "one file is read")):
        with pytest.raises(ValueError, match=why):
            files.named_file(**step)
    monkeypatch.setenv("TURNPACK_FILE", "a/batch.parquet")
    assert files.named_file() == files.named_file(step=0) == "a/batch.parquet"
    assert not caplog.text
    assert files.named_file(step=1) == "a/batch.parquet" and "the same rows" in caplog.text
    for name in ("TURNPACK_MIN_VERSION", "TURNPACK_TEMPERATURE", "TURNPACK_WAIT"):
        with monkeypatch.context() as m:
            m.setenv(name, "1,5")
            with pytest.raises(ValueError, match=f"{name}: '1,5' is no number"):
                files.Expected.from_environment()


def test_what_a_trainer_does_not_read(slime):
    """Advantages of tokens, weights and missing columns are refused by readers that would train on something else."""
    each = {**ROWS[2], "advantages": [0.0, 0.0, 0.5, -0.5]}
    for rows, take, why in (([each], files.advantages_of_rows, "other advantages in some tokens"), ([{**ROWS[2], "advantage": None}], files.advantages_of_rows, "has no advantage"),
                            ([{**ROWS[2], "advantage": None}], files.advantages_of_tokens, "has no advantage"), ([{**ROWS[2], "weights": [0.0, 0.0, 1.0, 0.5]}], files.advantages_of_rows, "loss weights"),
                            ([{**ROWS[2], "weights": [0.0, 0.0, 1.0, 0.5]}], files.advantages_of_tokens, "loss weights"), ([{**ROWS[2], "logprobs": None}], files.with_logprobs, "no log probabilities")):
        with pytest.raises(ValueError, match=why):
            take(rows)
    assert files.advantages_of_tokens([dict(ROWS[2])])[0]["advantages"] == [0.0, 0.0, 0.5, 0.5]
    assert files.advantages_of_tokens([each])[0]["advantages"] == [0.0, 0.0, 0.5, -0.5]
    assert files.advantages_of_rows([{**ROWS[2], "weights": [0.0, 0.0, 1.0, 1.0]}])
    assert files.advantages_of_tokens([{**each, "weights": [0.0, 0.0, 1.0, 0.5]}], weights=True)
    steps = [{"step": 0, "from": 2, "to": 3, "score": 1, "value": 1, "advantage": 0.5}, {"step": 1, "from": 3, "to": 4, "score": 0, "value": 0, "advantage": -0.5}]
    (scored,) = files.advantages_of_rows([{**each, "outcome_reward": 1.0, "metadata": json.dumps({"turnpack": {"steps": steps}})}])
    sample = slime.to_sample(scored, 0, 0, 0)
    assert slime.use_file_advantages(types.SimpleNamespace(advantage_estimator="step_wise"), [sample])
    with pytest.raises(ValueError, match="OpenClaw-RL alone"):
        slime.use_file_advantages(types.SimpleNamespace(advantage_estimator="grpo"), [sample])


def test_trl_takes_groups_of_one_size(tmp_path, monkeypatch):
    """The command refuses others before a model is loaded, and names the flag that leaves them out."""
    for name in ("torch", "trl", "datasets"):
        monkeypatch.setitem(sys.modules, name, MagicMock(GRPOTrainer=object))
    monkeypatch.delitem(sys.modules, "turnpack_trainers.trl", raising=False)
    from turnpack_trainers import trl
    for rows, sizes in ((ROWS[2:], "1"), ([*ROWS[:3], ROWS[3]], "1, 3")):
        path = write(tmp_path / f"{len(rows)}.parquet", rows)
        monkeypatch.setattr(sys, "argv", ["trl", "--file", str(path), "--model", "m"])
        with pytest.raises(ValueError, match=f"groups have {sizes} rows.*--group-size N"):
            trl.main()
    sys.modules.pop("turnpack_trainers.trl", None)


def test_prime_rl_has_the_weights(tmp_path, monkeypatch):
    """Weights of tokens reach prime-rl's samples, and rows without log probabilities are refused."""
    for name, member in (("trainer.batch", "build_bin_cost prepare_batch"), ("transports.rollouts", "FileSystemMicroBatchSender TrainingSample")):
        for part in ("prime_rl", "prime_rl." + name.split(".")[0], "prime_rl." + name):
            monkeypatch.setitem(sys.modules, part, types.ModuleType(part))
        vars(sys.modules["prime_rl." + name]).update(dict.fromkeys(member.split(), types.SimpleNamespace))
    monkeypatch.delitem(sys.modules, "turnpack_trainers.prime_rl", raising=False)
    from turnpack_trainers import prime_rl
    weights = [0.0, 0.0, 0.5, 1.5]
    (sample,) = prime_rl.training_samples(write(tmp_path / "weighed.parquet", [{**ROWS[2], "weights": weights}]))
    assert (sample.rl_weights, sample.advantages) == (weights, [0.0, 0.0, 0.5, 0.5])
    (sample,) = prime_rl.training_samples(write(tmp_path / "plain.parquet", [ROWS[2]]))
    assert sample.rl_weights is None
    with pytest.raises(ValueError, match="no log probabilities"):
        list(prime_rl.training_samples(write(tmp_path / "text.parquet", [{**ROWS[2], "logprobs": None}])))
    sys.modules.pop("turnpack_trainers.prime_rl")
