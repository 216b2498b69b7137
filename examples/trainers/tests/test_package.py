"""The package against files written here, and folders written by the command; trainers' own code where it is at hand:
TURNPACK_BIN names the command, TURNPACK_SLIME a checkout of slime."""
import importlib.util
import json
import os
import subprocess
import sys
import threading
import types
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", reason="SKIPPED: no pyarrow in this Python")
import pyarrow.parquet as pq  # noqa: E402

from turnpack_trainers import files, prompts  # noqa: E402

META = {"turnpack.schema_version": "1", "turnpack.tokenizer": "sha256:aa", "turnpack.template": "sha256:bb", "recipe": "dapo", "recipe.digest": "sha256:cc"}
ROOT = Path(__file__).resolve().parents[3]


def row(group, rollout, index=0, advantage=0.5, version=3, last=True):
    return {"sample_id": f"{rollout}#{index}", "group_id": group, "rollout_id": rollout, "sample_index": index, "is_last": last, "prompt_len": 2, "input_ids": [1, 2, 3, 4], "loss_mask": [0, 0, 1, 1],
            "logprobs": [0.0, 0.0, -0.5, -0.25], "versions": [-1, -1, version, version], "reward": 1.0, "advantage": advantage, "status": "completed", "finish_reason": "stop", "temperature": 1.0,
            "weights": None, "advantages": None, "metadata": None}


def write(path, rows, **meta):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows).replace_schema_metadata({**META, **meta}), path)
    return path


ROWS = [row("g0", "g0/0", last=False), row("g0", "g0/0", 1), row("g0", "g0/1"), row("g1", "g1/0")]


def test_steps_of_two_tokenizers(tmp_path):
    """Files of one set have one tokenizer, without any setting; other files beside them are none of the set."""
    write(tmp_path / "step_00.parquet", ROWS)
    write(tmp_path / "other.parquet", ROWS, **{"turnpack.tokenizer": "sha256:zz"})
    write(tmp_path / "step_9.parquet", ROWS)
    last = write(tmp_path / "step_10.parquet", ROWS, **{"turnpack.tokenizer": "sha256:zz"})
    for name in ("step_00", "other", "step_9"):
        assert files.read_rows(tmp_path / f"{name}.parquet", files.Expected()) == ROWS
    with pytest.raises(ValueError, match="step_00.parquet beside it with sha256:aa: a trainer has one"):
        files.read_rows(last, files.Expected())
    (tmp_path / "step_00.parquet").write_bytes(b"")
    assert files.read_rows(last, files.Expected()) == ROWS  # its own reading tells of the broken one


@pytest.mark.parametrize("where", ["", "data"])
def test_unfinished_sets(tmp_path, where):
    """Sets of both layouts are refused until they are complete; who waits takes the steps that are done."""
    done, open_ = (write(tmp_path / where / f"step_{i}.parquet", ROWS) for i in range(2))
    name = str(done.relative_to(tmp_path))
    (tmp_path / "progress.json").write_text(json.dumps({"options": "x", "shards": [{"file": name}]}))
    with pytest.raises(RuntimeError, match="not complete"):
        files.read_rows(done, files.Expected())
    assert files.read_rows(done, files.Expected(wait=1)) == ROWS
    with pytest.raises(RuntimeError, match="not complete"):
        files.read_rows(open_, files.Expected(wait=0.1))
    (tmp_path / "manifest.json").write_text("{}")
    assert files.read_rows(open_, files.Expected()) == ROWS


def test_waits_for_its_step(tmp_path):
    path = tmp_path / "step_0.parquet"
    with pytest.raises(FileNotFoundError, match="did not come"):
        files.read_rows(path, files.Expected(wait=0.1))
    ready = write(tmp_path / "made.parquet", ROWS)
    timer = threading.Timer(0.3, os.rename, (ready, path))
    timer.start()
    assert files.read_rows(path, files.Expected(wait=20)) == ROWS
    timer.join()


def test_expectations(tmp_path, monkeypatch):
    path = write(tmp_path / "batch.parquet", ROWS)
    for expected, why in ((files.Expected(tokenizer="sha256:zz"), "tokenizer sha256:aa"), (files.Expected(template="sha256:zz"), "template sha256:bb"),
                          (files.Expected(recipe="grpo"), "recipe dapo"), (files.Expected(min_version=4), "policy version 3"),
                          (files.Expected(tokenizer=str(tmp_path)), "no digest")):
        with pytest.raises((ValueError, FileNotFoundError), match=why):
            files.read_rows(path, expected)
    assert files.read_rows(path, files.Expected("sha256:aa", "sha256:bb", "sha256:cc", 3)) == ROWS
    with pytest.raises(ValueError, match="schema version '2'"):
        files.read_rows(write(tmp_path / "later.parquet", ROWS, **{"turnpack.schema_version": "2"}), files.Expected())
    with pytest.raises(ValueError, match="version unknown"):
        files.read_rows(write(tmp_path / "unknown.parquet", [{**ROWS[0], "versions": None}]), files.Expected(min_version=0))
    monkeypatch.setenv("TURNPACK_TEMPLATE", "sha256:zz")
    with pytest.raises(ValueError, match="template"):
        files.read_rows(path)


def test_temperature(tmp_path):
    path = write(tmp_path / "batch.parquet", [{**r, "temperature": t} for r, t in zip(ROWS, (0.7, 0.7, 1.0, 0.7))])
    with pytest.raises(ValueError, match=r"row g0/1#0 was sampled at the temperature 1, the trainer computes at 0.7"):
        files.read_rows(path, files.Expected(temperature=0.7))
    assert len(files.read_rows(path, files.Expected())) == len(ROWS)


def test_rows_that_another_tool_filtered(tmp_path, caplog):
    """Whole rollouts may be filtered away, some rows of one may not."""
    rows = [{**r, "rollout_mask_sum": 4 if r["rollout_id"] == "g0/0" else 2} for r in ROWS]
    path = tmp_path / "kept.parquet"
    pq.write_table(pa.Table.from_pylist(rows[2:]), path)
    assert files.read_rows(path, files.Expected()) == rows[2:]
    assert "another tool wrote it" in caplog.text
    for torn in (rows[1:], rows[:1] + rows[2:], [*rows, rows[3]], [{**r, "rollout_mask_sum": 9} for r in rows]):
        for write_torn in (write, lambda path, rows: pq.write_table(pa.Table.from_pylist(rows), path)):  # pyarrow keeps what the file says of itself
            write_torn(path, torn)
            with pytest.raises(ValueError, match="were filtered away or come twice"):
                files.read_rows(path, files.Expected())
    with pytest.raises(ValueError, match="tokenizer"):
        files.read_rows(path, files.Expected(tokenizer="sha256:aa"))


def test_types():
    """The package passes mypy --strict (pip install './examples/trainers[types]')."""
    pytest.importorskip("mypy", reason="SKIPPED: no mypy in this Python")
    trainers = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", "turnpack_trainers"], cwd=trainers, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def megatron(monkeypatch):
    """The module over stand-ins of what it takes from Megatron-Bridge."""
    def recipe():
        space = types.SimpleNamespace
        return space(model=space(seq_length=1, calculate_per_token_loss=False, context_parallel_size=1, tensor_model_parallel_size=2, sequence_parallel=False),
                     train=space(micro_batch_size=4, train_iters=1), ddp=space(average_in_collective=True), dataset=None)

    def overridden(config, cli_overrides):
        for override in cli_overrides or ():
            name, value = override.split("=", 1)
            *path, last = name.split(".")
            at = config
            for part in path:
                at = getattr(at, part)
            setattr(at, last, json.loads(value))
        return config

    names = ["megatron.bridge.data.builders.gpt_sft", "megatron.bridge.data.packing", "megatron.bridge.recipes", "megatron.bridge.training.utils.omegaconf_utils"]
    for name in dict.fromkeys(".".join(n.split(".")[:k]) for n in names for k in range(1, len(n.split(".")) + 1)):
        module = types.ModuleType(name)
        module.GPTSFTDatasetConfig = module.PackedSequenceSpecs = types.SimpleNamespace
        module.some_sft_config, module.process_config_with_overrides = recipe, overridden
        monkeypatch.setitem(sys.modules, name, module)
        if "." in name:
            parent, _, last = name.rpartition(".")
            setattr(sys.modules[parent], last, module)
    monkeypatch.delitem(sys.modules, "turnpack_trainers.megatron", raising=False)
    import turnpack_trainers.megatron
    return turnpack_trainers.megatron


def test_megatron_command(tmp_path, megatron):
    """The command of the README sets what packs need, after it what is asked for, and refuses what does not fit packs."""
    readme = (ROOT / "examples/trainers/megatron/README.md").read_text().replace("\\\n", " ")
    (command,) = [line for line in readme.splitlines() if line.startswith("    torchrun")]
    start, arguments = command.replace("…", "").split("-m turnpack_trainers.megatron ")
    assert start.strip() == "torchrun --nproc-per-node GPUS"
    arguments = [a.strip("'") for a in arguments.replace("RECIPE", "some_sft_config").replace("LENGTH", "4096").replace("CHECKPOINT", '"c"').replace("STEPS", "7").split()]
    arguments = [a for a in arguments if not a.startswith("checkpoint.")]
    config, dry = megatron.settings(arguments)
    assert (config.model.seq_length, config.train.micro_batch_size, config.train.train_iters, dry) == (4096, 1, 7, False)
    assert config.model.calculate_per_token_loss and not config.ddp.average_in_collective
    specs = config.dataset.offline_packing_specs
    assert (specs.packed_train_data_path, specs.packed_sequence_size, config.dataset.seq_length) == ("batch/*.idx.parquet", 4096, 4096)
    assert megatron.settings([*arguments, "--dry-run"])[1]
    for more, why in ((["train.micro_batch_size=2"], "micro_batch_size=2"), (["model.context_parallel_size=2"], "--pad-multiple 4"), (["model.sequence_parallel=true"], "--pad-multiple 2"),
                      (["model.calculate_per_token_loss=false"], "calculate_per_token_loss"), (['dataset.dataset_kwargs={"answer_only_loss": false}'], "prompts and tool output")):
        with pytest.raises(ValueError, match=why):
            megatron.settings([*arguments, *more])
    assert megatron.settings([*arguments, "model.context_parallel_size=2", "--pad-multiple", "4"])
    with pytest.raises(ValueError, match="has no 'other'"):
        megatron.settings([a.replace("some_sft_config", "other") for a in arguments])
    with pytest.raises(SystemExit):
        megatron.settings([*arguments, "--unknown", "1"])


def test_megatron_metadata(tmp_path, megatron):
    """Shapes of several steps hold for all of them."""
    convert(tmp_path / "set", "--target", "megatron", "--seq-len", "4096", "--groups-per-step", "2", "--estimator", "none")
    each = [json.loads(p.read_text())[0] for p in sorted((tmp_path / "set").glob("train-*.metadata.json"))]
    assert len(each) == 3
    config = megatron.packed_dataset(str(tmp_path / "set" / "*.idx.parquet"), 4096, metadata=str(tmp_path / "set" / "train-*.metadata.json"), scratch=str(tmp_path / "scratch"))
    merged = json.loads(Path(config.offline_packing_specs.packed_metadata_path).read_text())
    assert merged == [{"max_samples_per_bin": max(e["max_samples_per_bin"] for e in each), "dataset_max_seqlen": max(e["dataset_max_seqlen"] for e in each),
                       "min_packed_seqlen": min(e["min_packed_seqlen"] for e in each)}]
    with pytest.raises(ValueError, match="no metadata"):
        megatron.packed_dataset("x", 4096, metadata=str(tmp_path / "*.none"), scratch=str(tmp_path))


@pytest.mark.parametrize("target, file", [("megatron", "train-00000.idx.parquet"), ("prime-rl", "rollouts/step_1/rank_0.bin")])
def test_sets_whose_files_say_nothing(tmp_path, caplog, target, file):
    """The manifest of a set says what its files cannot: tokenizer, template, recipe, temperature, policy."""
    out = tmp_path / "set"
    path = out / file
    convert(out, "--target", target, "--seq-len", "4096", *(["--estimator", "none"] if target == "megatron" else ["--recipe", "prime-rl"]), dumps=ROOT / "examples/tutorial/dumps")
    manifest = json.loads((out / "manifest.json").read_text())
    oldest = int(min(s.get("versions", {"min": -1})["min"] for s in manifest["shards"]))
    right = dict(tokenizer=manifest["tokenizer"], template=manifest["template"], temperature=manifest["shards"][0]["temperature"]["min"], min_version=oldest if oldest >= 0 else None)
    assert files.check_set(path, files.Expected(**right))["SeqLen"] == 4096
    assert files.check_set(out, files.Expected(recipe="prime-rl" if target == "prime-rl" else ""))
    for wrong, why in ((dict(tokenizer="sha256:zz"), "made with the tokenizer sha256:"), (dict(template="sha256:zz"), "made with the template"), (dict(recipe="other"), "made by the recipe"),
                       (dict(temperature=0.123), f"of {file} was sampled at the temperature"), (dict(min_version=99), f"of {file} trains tokens of policy version")):
        with pytest.raises(ValueError, match=why):
            files.check_set(path, files.Expected(**{**right, **wrong}))
    (out / "manifest.json").unlink()
    assert files.check_set(path, files.Expected()) == {}
    with pytest.raises(ValueError, match="no manifest.json yet, which would say its tokenizer"):
        files.check_set(path, files.Expected(tokenizer="sha256:zz"))


def test_verl_prompts(tmp_path):
    prompts.load.cache_clear()
    path = write(tmp_path / "batch.parquet", ROWS)
    prompts.write_prompts(path, tmp_path / "prompts.parquet")
    assert [(p["turnpack_group"], p["__rollout_n__"], p["turnpack_file"]) for p in pq.read_table(tmp_path / "prompts.parquet").to_pylist()] == [("g0", 2, str(path)), ("g1", 1, str(path))]
    with pytest.raises(ValueError, match="different advantages"):
        prompts.load(write(tmp_path / "steps.parquet", [row("g", "r", last=False), row("g", "r", 1, advantage=-1.0)]))


@pytest.fixture
def slime(monkeypatch):
    class Status(Enum):
        COMPLETED, TRUNCATED, ABORTED, FAILED = "completed", "truncated", "aborted", "failed"

    @dataclass
    class Sample:
        group_index: int
        index: int
        rollout_id: int
        tokens: list
        response_length: int
        loss_mask: list
        rollout_log_probs: list
        reward: float
        status: Status
        metadata: dict = field(default_factory=dict)
        remove_sample: bool = False

    Sample.Status = Status
    for name, values in (("slime", {}), ("slime.rollout", {}), ("slime.rollout.base_types", {"RolloutFnTrainOutput": types.SimpleNamespace}), ("slime.utils", {}), ("slime.utils.types", {"Sample": Sample})):
        module = types.ModuleType(name)
        module.__dict__.update(values)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "turnpack_trainers.slime", raising=False)
    import turnpack_trainers.slime
    return turnpack_trainers.slime


def test_slime_step_scores(slime):
    made = dict(row("g", "g/0"), outcome_reward=1.0, metadata='{"turnpack": {"steps": [{"step": 3, "from": 2, "to": 4, "score": -1, "value": 0, "advantage": 0.5}]}}')
    step = slime.to_sample(made, 0, 0, 0).metadata["step_wise"]
    start = made["prompt_len"]
    assert step == {"step_indices": [3], "step_token_spans": [[2 - start, 4 - start]], "step_scores": [-1], "step_scores_with_outcome": [0], "step_advantages": [0.5], "outcome_reward": 1.0}
    assert "step_wise" not in slime.to_sample(row("g", "g/0"), 0, 0, 0).metadata


@pytest.mark.parametrize("batch, want", [(3, 3), (1, 3), (2, 4), (4, 4), (8, 8)])
def test_slime_steps(tmp_path, monkeypatch, caplog, slime, batch, want):
    """Short steps and surpluses are filled up to a multiple of the batch, and told."""
    write(tmp_path / "step_7.parquet", ROWS)
    monkeypatch.setenv("TURNPACK_FILE", str(tmp_path / "step_{rollout_id}.parquet"))
    samples = [s for g in slime.generate_rollout(types.SimpleNamespace(global_batch_size=batch), 7, None).samples for r in g for s in r]
    assert len({s.rollout_id for s in samples}) == want
    fill = [s for s in samples if s.remove_sample]
    assert len(fill) == want - 3 and all(s.loss_mask == [0] and s.rollout_log_probs == [0.0] and s.reward == 0 for s in fill)
    assert [s.index for s in samples] == list(range(len(samples)))
    assert [s.tokens for s in samples if not s.remove_sample] == [r["input_ids"] for r in ROWS]
    assert slime.use_file_advantages(types.SimpleNamespace(advantage_estimator="gspo", normalize_advantages=False), samples)[1] == [0.5] * len(ROWS) + [0.0] * len(fill)
    for args in ({"advantage_estimator": "ppo"}, {"normalize_advantages": True}, {"custom_advantage_function_path": "a.b"}, {"use_opd": True}):
        with pytest.raises(ValueError, match="in the place of the file's"):
            slime.use_file_advantages(types.SimpleNamespace(**args), samples)
    assert ("train nothing" in caplog.text) == bool(fill)
    with pytest.raises(ValueError, match="temperature 1, and --rollout-temperature is 0.7"):
        slime.generate_rollout(types.SimpleNamespace(global_batch_size=batch, rollout_temperature=0.7), 7, None)
    checkout = os.environ.get("TURNPACK_SLIME")
    if not checkout:
        pytest.skip("SKIPPED in part: set TURNPACK_SLIME to a checkout of slime to run its own build_dp_schedule")
    for name in ("flops_utils", "seqlen_balancing", "dp_schedule"):
        spec = importlib.util.spec_from_file_location("slime.utils." + name, Path(checkout, "slime", "utils", name + ".py"))
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
    args = types.SimpleNamespace(use_dynamic_batch_size=True, max_tokens_per_gpu=16, micro_batch_size=None, balance_by_flops=False, balance_data=False)
    partitions, _, _, sizes = module.build_dp_schedule(args, {"dp_size": 1, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1},
                                                       [len(s.tokens) for s in samples], global_batch_size=batch, rollout_indices=[s.rollout_id for s in samples])
    assert sorted(partitions[0]) == list(range(len(samples))), "slime drops no sample"
    assert sizes == [batch] * (want // batch)


def convert(out, *flags, dumps=ROOT / "examples/turnpack/demo/dumps"):
    binary = os.environ.get("TURNPACK_BIN")
    if not binary:
        pytest.skip("SKIPPED: set TURNPACK_BIN to the turnpack command")
    model = ROOT / "examples/tutorial/model"
    subprocess.run([binary, "convert", "--model", str(model), "--in", str(dumps), "--out", str(out), "--quiet", *flags], check=True, capture_output=True)
    return binary


def readers():
    def duck(p):
        import duckdb
        return duckdb.sql(f"select * from '{p}/*.parquet'").to_arrow_table()

    def pandas(p):
        return pytest.importorskip("pandas").read_parquet(p)

    def polars(p):
        return pytest.importorskip("polars").read_parquet(p)

    def datasets(p):
        return pytest.importorskip("datasets").load_dataset("parquet", data_dir=str(p), split="train", cache_dir=str(p) + ".cache")

    return {"pyarrow": pq.read_table, "pandas": pandas, "polars": polars, "duckdb": duck, "datasets": datasets}


@pytest.mark.parametrize("name", readers())
def test_folders(tmp_path, name):
    """Each reader takes the data folder of a set whole."""
    if name == "duckdb":
        pytest.importorskip("duckdb")
    convert(tmp_path / "set", "--groups-per-step", "2")
    data = tmp_path / "set" / "data"
    want = sum(pq.read_metadata(f).num_rows for f in data.iterdir())
    assert len(readers()[name](data)) == want > 2


def test_folders_of_both_kinds(tmp_path):
    """Files with and without a trace in one folder are read whole, or refused, by each reader; none drops rows."""
    want = 0
    (tmp_path / "both").mkdir()
    for k, trace in enumerate(("on", "off")):
        convert(tmp_path / trace, "--groups-per-step", "3", "--trace", trace)
        for f in (tmp_path / trace / "data").iterdir():
            f.rename(tmp_path / "both" / f"{k}_{f.name}")
    want = sum(pq.read_metadata(f).num_rows for f in (tmp_path / "both").iterdir())
    for name, read in readers().items():
        try:
            assert len(read(tmp_path / "both")) == want, name
        except (pytest.skip.Exception, ImportError):
            continue
        except Exception as e:
            assert name in ("polars", "duckdb") and "sources" in str(e), (name, e)
    if importlib.util.find_spec("polars"):
        import polars
        assert len(polars.scan_parquet(tmp_path / "both", missing_columns="insert", extra_columns="ignore").collect()) == want
    if importlib.util.find_spec("duckdb"):
        import duckdb
        assert len(duckdb.sql(f"select * from read_parquet('{tmp_path}/both/*.parquet', union_by_name=true)").to_arrow_table()) == want


def test_tokenizer_of_the_trainer(tmp_path):
    convert(tmp_path / "set")
    file, model = tmp_path / "set" / "batch.parquet", ROOT / "examples/tutorial/model"
    assert files.read_rows(file, files.Expected(tokenizer=str(model)))
    (tmp_path / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes() + b" ")
    with pytest.raises(ValueError, match="tokenizer"):
        files.read_rows(file, files.Expected(tokenizer=str(tmp_path)))


@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
def test_filtered_files(tmp_path, name):
    """A file that another tool filtered and wrote can be shown and audited."""
    tool = pytest.importorskip(name)
    binary = convert(tmp_path / "set")
    file, kept = tmp_path / "set" / "batch.parquet", tmp_path / "kept.parquet"
    if name == "pandas":
        frame = tool.read_parquet(file)
        frame[frame.reward > 0].to_parquet(kept)
    elif name == "polars":
        frame = tool.read_parquet(file)
        frame.filter(tool.col("reward") > 0).write_parquet(kept)
    else:
        tool.sql(f"copy (select * from '{file}' where reward > 0) to '{kept}' (format parquet)")
    assert 0 < pq.read_metadata(kept).num_rows < pq.read_metadata(file).num_rows
    model = str(ROOT / "examples/tutorial/model")
    for command in (["show", str(kept), "0", "--model", model], ["audit", str(kept), "--model", model], ["view", str(kept), "--model", model]):
        done = subprocess.run([binary, *command], capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def batch(folder, seq):
    from turnpack_trainers import live  # noqa: F401
    path = write(folder / "data" / f"batch_{seq:06d}.parquet", [row(f"g{seq}", f"g{seq}/0")])
    with open(folder / "batches.jsonl", "a") as f:
        f.write(json.dumps({"seq": seq, "group": f"g{seq}", "step": 0, "file": f"data/{path.name}", "digest": "sha256:00", "rows": 1, "tokens": 4, "trained": 2}) + "\n")
    return path


def test_live_folder(tmp_path):
    """Batches come as the service writes them; a line that has no file yet is waited for."""
    from turnpack_trainers import live
    batch(tmp_path, 1)
    second = batch(tmp_path, 2)
    hidden = second.rename(tmp_path / "hidden")
    got = live.from_folder(tmp_path, poll=0.01)
    assert next(got)[0] == 1
    threading.Timer(0.1, os.rename, (hidden, second)).start()
    seq, rows = next(got)
    assert (seq, rows[0]["group_id"]) == (2, "g2")
    assert next(live.from_folder(tmp_path, after=1))[0] == 2
    batch(tmp_path, 3)
    second.unlink()
    with pytest.raises(FileNotFoundError, match="was removed"):
        next(live.from_folder(tmp_path, after=1))
    with pytest.raises(ValueError, match="tokenizer"):
        next(live.from_folder(tmp_path, after=2, expected=files.Expected(tokenizer="sha256:other")))


def test_live_service():
    """Each batch is given once and acknowledged when the next is asked for; a service that is away or has none is asked again."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    from turnpack_trainers import live
    acked, asked = [], []

    class Service(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if len(asked) == 1:
                self.send_response(503)
                return self.end_headers()
            after = int(self.path.split("after=")[1].split("&")[0])
            if len(asked) == 2:
                self.send_response(204)
                return self.end_headers()
            table = pa.Table.from_pylist([row("g", f"g/{after}")]).replace_schema_metadata({**META, "turnpack.group_seq": str(after + 1), "turnpack.tokenizer": f"sha256:{after // 9}"})
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(sink.getvalue())

        def do_POST(self):
            acked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["seq"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    got = live.from_service(f"http://127.0.0.1:{server.server_port}", after=6, wait=0.1)
    assert [next(got)[0], next(got)[0]] == [7, 8]
    assert acked == [7]
    assert next(got)[1][0]["rollout_id"] == "g/8" and acked == [7, 8]
    with pytest.raises(ValueError, match="sha256:1, and one before it with sha256:0: a trainer has one"):
        next(got)
    server.shutdown()


def test_train_logprobs(tmp_path):
    """What a trainer computed stands beside what was recorded, and the audit compares the two."""
    path, out = write(tmp_path / "a.parquet", ROWS), tmp_path / "b.parquet"
    with pytest.raises(ValueError, match="for each token of 4 rows"):
        files.write_train_logprobs(path, [[0.0] * 4] * 3, out)
    files.write_train_logprobs(path, [[0.0, 0.0, -0.5, -0.25]] * 3 + [[0.0, 0.0, -2.5, -0.25]], out)
    assert [{k: v for k, v in r.items() if k != "train_logprobs"} for r in files.read_rows(out, files.Expected())] == ROWS
    if "TURNPACK_BIN" not in os.environ:
        pytest.skip("SKIPPED: TURNPACK_BIN does not name the command")
    told = json.loads(subprocess.run([os.environ["TURNPACK_BIN"], "audit", str(out), "--json"], capture_output=True, text=True).stdout)
    assert told["logprob_drift"] == {"tokens": 8, "mean": 0.25, "beyond": 1, "largest": 2}
    assert [f["rows"] for f in told["findings"] if f["rule"] == "logprob-drift"] == [1]
