"""The command lines of the READMEs, as they stand there, in processes of their own: nothing of the package is imported here.

verl and TRL run where they are installed, slime with TURNPACK_SLIME (a checkout; its train.py needs a GPU, so that one here calls what
it calls), the files are written by TURNPACK_BIN."""
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pq = pytest.importorskip("pyarrow.parquet", reason="SKIPPED: no pyarrow in this Python")
TRAINERS = Path(__file__).resolve().parents[1]
TUTORIAL = TRAINERS.parent / "tutorial"


def commands(trainer):
    """The indented lines of a README that are command lines, whole."""
    text = (TRAINERS / trainer / "README.md").read_text().replace("\\\n", " ")
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.startswith("    ")]


def need(module):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"SKIPPED: no {module} in this Python")


def batch(folder, *flags, dumps=None):
    binary = os.environ.get("TURNPACK_BIN")
    if not binary:
        pytest.skip("SKIPPED: set TURNPACK_BIN to the turnpack command")
    subprocess.run([binary, "convert", "--model", TUTORIAL / "model", "--in", dumps or TUTORIAL / "dumps", "--out", folder / "batch", "--quiet", *flags], check=True, capture_output=True)


def run(command, folder, **env):
    """command in a shell, where python is this one and the package is installed."""
    (folder / "bin").mkdir(exist_ok=True)
    link = folder / "bin" / "python"
    if not link.exists():
        link.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        link.chmod(0o755)
    path = os.pathsep.join([str(TRAINERS), env.pop("PYTHONPATH", "")])
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{link.parent}:{os.environ['PATH']}", "PYTHONPATH": path, **env})
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def test_verl(tmp_path):
    """The prompts are written, verl takes the settings, and a process of verl that imports nothing of ours knows estimator and loop."""
    need("verl")
    batch(tmp_path, "--target", "verl")
    prompts, train = commands("verl")
    run(prompts, tmp_path)
    settings = run(train.replace("…", "--cfg job"), tmp_path)
    assert "adv_estimator: turnpack" in settings
    config = Path(re.search(r"agent_loop_config_path: (\S+)", settings)[1])
    assert "turnpack_trainers.verl.ReplayLoop" in config.read_text()
    variable = train.split()[0]
    (tmp_path / "ask.py").write_text("from verl.trainer.ppo import core_algos\nfrom verl.experimental.agent_loop.agent_loop import _agent_loop_registry as loops\n"
                                     "print(core_algos.get_adv_estimator_fn('turnpack').__module__, loops['turnpack']['_target_'])\n")
    assert run(f"{variable} python ask.py", tmp_path).split() == ["turnpack_trainers.verl", "turnpack_trainers.verl.ReplayLoop"]


def texts(folder):
    """The dumps of the tutorial without ids and log probabilities."""
    folder.mkdir()
    for file in (TUTORIAL / "dumps").iterdir():
        records = [{k: v for k, v in json.loads(line).items() if k != "turns"} for line in file.read_text().splitlines()]
        (folder / file.name).write_text("".join(json.dumps(r) + "\n" for r in records))
    return folder


@pytest.mark.parametrize("logprobs", [True, False])
def test_trl(tmp_path, logprobs):
    """Two steps on the CPU, and the weights have moved; of text alone as well."""
    need("trl")
    batch(tmp_path, "--target", "trl", dumps=None if logprobs else texts(tmp_path / "texts"))
    assert (pq.read_table(tmp_path / "batch" / "batch.parquet").column("logprobs").null_count == 0) == logprobs
    (command,) = commands("trl")
    run(command.replace("MODEL", str(TUTORIAL / "model")).replace("…", "--max_steps 2 --use_cpu true --bf16 false --report_to none --learning_rate 1e-3"), tmp_path)
    assert (tmp_path / "out" / "model.safetensors").read_bytes() != (TUTORIAL / "model" / "model.safetensors").read_bytes()


AREAL_CONFIG = """
experiment_name: e
trial_name: t
total_train_epochs: 1
tokenizer_path: model
cluster: {fileroot: areal}
train_dataset: {path: none, type: rl, batch_size: 8}
actor: {backend: "fsdp:d1p1t1", experiment_name: e, trial_name: t, path: model, temperature: "${gconfig.temperature}", reward_scaling: 10.0, reward_bias: -0.5, reward_norm: {mean_level: group, std_level: group, group_size: 2}}
rollout: {backend: "vllm:d1p1t1", experiment_name: e, trial_name: t, fileroot: areal, tokenizer_path: model}
gconfig: {n_samples: 2}
saver: {experiment_name: e, trial_name: t, fileroot: areal}
recover: {mode: disabled, experiment_name: e, trial_name: t, fileroot: areal}
evaluator: {experiment_name: e, trial_name: t, fileroot: areal}
stats_logger: {experiment_name: e, trial_name: t, fileroot: areal}
"""


def test_areal(tmp_path):
    """AReaL's own configuration takes the command's settings, and they fit the file; without some they do not."""
    need("areal.trainer")
    batch(tmp_path, "--target", "areal", "--policy-version", "0")
    (tmp_path / "CONFIG.yaml").write_text(AREAL_CONFIG)
    (command,) = commands("areal")
    rollouts = len(set(pq.read_table(tmp_path / "batch" / "batch.parquet")["rollout_id"].to_pylist()))
    command = command.replace("ROLLOUTS", str(rollouts)).replace("=T ", "=1 ").replace("…", "")
    # Its rollout engines need a GPU: the step before them stands for the whole.
    dry = command.replace("-m turnpack_trainers.areal_main", "dry.py")
    (tmp_path / "dry.py").write_text("import sys\nfrom turnpack_trainers import areal_main\nconfig, rollouts = areal_main.settings(sys.argv[1:])\nprint(len(rollouts), type(config).__name__)\n")
    assert run(dry, tmp_path).split()[-2:] == [str(rollouts), "GRPOConfig"]
    wrong = re.sub(r"\S+(reward_norm|reward_bias|n_samples)=\S+", "", dry)
    with pytest.raises(AssertionError, match="n_samples=1(.|\n)*actor.reward_norm(.|\n)*actor.reward_bias"):
        run(wrong, tmp_path)


SLIME_MAIN = """
import argparse
from slime.utils.misc import load_function
from slime.utils.dp_schedule import build_dp_schedule
parser = argparse.ArgumentParser()
parser.add_argument("--global-batch-size", type=int)
parser.add_argument("--rollout-function-path")
parser.add_argument("--custom-reward-post-process-path")
parser.add_argument("--use-rollout-logprobs", action="store_true")
parser.add_argument("--use-dynamic-batch-size", action="store_true")
args = parser.parse_args()
args.max_tokens_per_gpu, args.micro_batch_size, args.balance_by_flops, args.balance_data = 1 << 16, None, False, False
for step in range(STEPS):
    samples = [s for group in load_function(args.rollout_function_path)(args, step, None).samples for rollout in group for s in rollout]
    rewards, advantages = load_function(args.custom_reward_post_process_path)(args, samples)
    parallel = {"dp_size": 1, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1}
    parts, _, _, sizes = build_dp_schedule(args, parallel, [len(s.tokens) for s in samples], global_batch_size=args.global_batch_size, rollout_indices=[s.rollout_id for s in samples])
    print(step, len(samples), sorted(parts[0]) == list(range(len(samples))), sizes, sum(s.remove_sample for s in samples), len(advantages))
"""


def test_slime(tmp_path):
    """slime's own loader of functions, Sample and schedule take every step of a batch whose last is short."""
    checkout = os.environ.get("TURNPACK_SLIME")
    if not checkout:
        pytest.skip("SKIPPED: set TURNPACK_SLIME to a checkout of slime")
    need("torch")
    batch(tmp_path, "--target", "slime", "--rollouts-per-step", "12")
    steps = len(list((tmp_path / "batch" / "data").iterdir()))
    (tmp_path / "train.py").write_text(SLIME_MAIN.replace("STEPS", str(steps)))
    (command,) = commands("slime")
    said = run(command.replace(" N ", " 12 ").replace("…", ""), tmp_path, PYTHONPATH=checkout).splitlines()
    assert len(said) == steps > 1
    filled = [int(line.split()[-2]) for line in said]
    assert all(" True [12] " in line for line in said) and sum(filled) > 0, said
