"""The command lines of the READMEs, as they stand there, in processes of their own: nothing of the package is imported here.

verl and TRL run where they are installed, slime with TURNPACK_SLIME (a checkout; its train.py needs a GPU, so that one here calls what
it calls), the files are written by TURNPACK_BIN. SkyRL's entry point and loop run to their end over workers that stand in. AReaL,
NeMo-RL, prime-rl and Megatron-Bridge start engines or GPUs: up to there their own configuration classes take the command's settings and are compared with the file."""
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kit import checkout, commands

pq = pytest.importorskip("pyarrow.parquet", reason="SKIPPED: no pyarrow in this Python")
TRAINERS = Path(__file__).resolve().parents[1]
TUTORIAL = TRAINERS.parent / "tutorial"


def need(module):
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # of what it is a part of
        found = None
    if found is None or found.origin is None:  # a folder of READMEs has such a name
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
    slime = checkout("TURNPACK_SLIME", "slime")
    need("torch")
    need("httpx")
    batch(tmp_path, "--target", "slime", "--rollouts-per-step", "12")
    steps = len(list((tmp_path / "batch" / "data").iterdir()))
    (tmp_path / "train.py").write_text(SLIME_MAIN.replace("STEPS", str(steps)))
    (command,) = commands("slime")
    said = run(command.replace(" N ", " 12 ").replace("…", ""), tmp_path, PYTHONPATH=str(slime)).splitlines()
    assert len(said) == steps > 1
    filled = [int(line.split()[-2]) for line in said]
    assert all(" True [12] " in line for line in said) and sum(filled) > 0, said


# Python before 3.12: their configuration classes want its TypedDict.
TYPED_DICT = "import sys, typing\nif sys.version_info < (3, 12):\n    import typing_extensions\n    typing.TypedDict = typing_extensions.TypedDict\n"


def groups_of(path):
    """{group: its rollouts} of a file."""
    rows, groups = pq.read_table(path, columns=["group_id", "rollout_id"]).to_pylist(), {}
    for r in rows:
        groups.setdefault(r["group_id"], set()).add(r["rollout_id"])
    return groups


# Its main and its training loop; of its workers and engines, which need GPUs, it is told what they are given. Ray runs what it is given.
SKYRL_START = """
import types
from unittest.mock import MagicMock
import ray
def remote(*given, **options):
    def here(function):
        function.remote = function
        return function
    return here(*given) if given else here
ray.remote, ray.get, ray.nodes = remote, lambda value: value, list
from skyrl.train import trainer
from skyrl.train.entrypoints import main_base
from skyrl.train.utils import utils
class Dispatch(MagicMock):
    def get_lcm_dp_size(self):
        return 1
    async def save_weights_for_sampler(self):
        pass
    def stage_data(self, model, data, boundaries):
        for a, b in boundaries:
            mask = data["loss_mask"][a:b]
            print("given", model, b - a, int(mask.sum()), float((data["advantages"][a:b].abs() * mask).sum()), float((data["rollout_logprobs"][a:b] * mask).sum()))
        return [None] * len(boundaries)
    def forward_backward_from_staged(self, model, chunk):
        return types.SimpleNamespace(metrics={"policy_loss": 0.0})
    def optim_step(self, model):
        return 0.0
def build_models(self, *workers):
    self.dispatch, self.ref_model = Dispatch(), None
workers = types.ModuleType("fsdp_worker")
workers.PolicyWorker = workers.CriticWorker = workers.RefWorker = None
sys.modules["skyrl.backends.skyrl_train.workers.fsdp.fsdp_worker"] = workers
utils.initialize_ray = trainer.RayPPOTrainer.init_weight_sync_state = lambda *a: None
main_base.BasePPOExp.get_inference_client = lambda self: MagicMock()
trainer.RayPPOTrainer.build_models = build_models
main_base.main()
"""


def test_skyrl(tmp_path):
    """SkyRL's own entry point and training loop run the command to its end, and its workers are given the file's rows; without some
    settings they do not fit the file."""
    need("skyrl.train.trainer")
    batch(tmp_path, "--target", "skyrl")
    file = tmp_path / "batch" / "batch.parquet"
    groups, rows = groups_of(file), pq.read_table(file).to_pylist()
    (command,) = commands("skyrl")
    command = command.replace("=GROUPS", f"={len(groups)}").replace("=ROLLOUTS", f"={max(map(len, groups.values()))}").replace("=T ", f"={rows[0]['temperature']:g} ")
    command = command.replace("…", f"trainer.policy.model.path={TUTORIAL / 'model'} trainer.logger=console trainer.placement.colocate_all=false data.dataloader.num_workers=0 trainer.ckpt_interval=-1")
    (tmp_path / "start.py").write_text(TYPED_DICT + SKYRL_START)
    start = command.replace("-m skyrl.train.entrypoints.main_base", "start.py")
    (given,) = [line.split() for line in run(start, tmp_path, HOME=str(tmp_path)).splitlines() if line.startswith("given policy")]
    trained = [(a, p) for r in rows for a, p, m in zip(r["advantages"], r["logprobs"], r["loss_mask"]) if m]
    assert [int(n) for n in given[2:4]] == [len(rows), len(trained)]
    assert [float(n) for n in given[4:]] == pytest.approx([sum(abs(a) for a, _ in trained) / len(trained), sum(p for _, p in trained)], rel=1e-4)
    (tmp_path / "dry.py").write_text(TYPED_DICT + "from turnpack_trainers import skyrl_main\nskyrl_main.settings(sys.argv[1:])\n")
    with pytest.raises(AssertionError, match="n_samples_per_prompt="):
        run(re.sub(r"n_samples_per_prompt=\d+", "n_samples_per_prompt=99", start).replace("start.py", "dry.py"), tmp_path)


NEMO_RL_MAIN = """
import argparse, os
from nemo_rl.algorithms import grpo
from nemo_rl.utils.config import load_config, parse_hydra_overrides, register_omegaconf_resolvers
from omegaconf import OmegaConf
register_omegaconf_resolvers()
parser = argparse.ArgumentParser()
parser.add_argument("--config")
args, overrides = parser.parse_known_args()
config = grpo.MasterConfig(**OmegaConf.to_container(parse_hydra_overrides(load_config(args.config), overrides), resolve=True))
estimator = grpo._create_advantage_estimator(config)
for step in range(config.grpo.max_num_steps):
    rows, _ = grpo.run_multi_turn_rollout()
    print(step, rows.size, int(rows["loss_multiplier"].sum()), type(estimator).__name__)
"""

# What NeMo-RL imports and does not use on the way, and a version of transformers that it refuses.
NEMO_RL_ABSENT = TYPED_DICT + """
from unittest.mock import MagicMock
import importlib
import datasets, transformers  # they ask for specs, which those that stand in have not
while True:
    try:
        importlib.import_module("nemo_rl.algorithms.grpo")
        break
    except AssertionError:
        sys.modules["transformers"].__version__ = "5.11.0"
    except ModuleNotFoundError as e:
        if e.name.startswith("nemo_rl"):
            raise
        sys.modules[e.name] = MagicMock(__path__=[], __spec__=None)
    except ImportError as e:
        if "TensorBoard" not in str(e):
            raise
        sys.modules["torch.utils.tensorboard"] = MagicMock()
import runpy
runpy.run_module("turnpack_trainers.nemo_rl", run_name="__main__", alter_sys=True)
"""


def test_nemo_rl(tmp_path):
    """NeMo-RL's own configuration takes the command's settings, and each step is the rows of its file; settings that are missing are named."""
    nemo = checkout("TURNPACK_NEMO_RL", "NeMo-RL")
    for module in ("torch", "transformers", "omegaconf", "hydra", "pydantic"):
        need(module)
    batch(tmp_path, "--target", "nemo-rl", "--groups-per-step", "1")
    files = sorted((tmp_path / "batch" / "data").iterdir())
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "run_grpo.py").write_text(NEMO_RL_MAIN)
    (tmp_path / "start.py").write_text(NEMO_RL_ABSENT)
    (command,) = commands("nemo-rl")
    command = command.replace("-m turnpack_trainers.nemo_rl", "start.py").replace("--config …", f"--config {nemo}/examples/configs/grpo_math_1B.yaml grpo.max_num_steps={len(files)} policy.train_global_batch_size=8")
    steps = [line.split() for line in run(command, tmp_path, PYTHONPATH=str(nemo)).splitlines() if line.endswith("FileAdvantages")]
    assert [int(s[2]) for s in steps] == [pq.read_metadata(tmp_path / "batch" / "data" / f"step_{i}.parquet").num_rows for i in range(len(files))]
    assert all(int(s[1]) % 8 == 0 for s in steps)
    with pytest.raises(AssertionError, match="grpo.val_period"):
        run(command.replace("grpo.val_period=0", ""), tmp_path, PYTHONPATH=str(nemo))


PRIME_RL_DRY = """
import runpy, sys, types
from prime_rl.transports.rollouts import setup_micro_batch_receiver
def train(config):
    for rank in range(RANKS):
        receiver = setup_micro_batch_receiver(config.output_dir, rank, 1, config.rollout_transport)
        for step in range(config.max_steps):
            assert receiver.can_receive(), (rank, step)
            packs = receiver.receive()
            assert all(len(p.input_ids) <= config.model.seq_len for p in packs)
            print("rank", rank, "step", step + 1, len(packs), sum(map(sum, (p.loss_mask for p in packs))))
        assert not receiver.can_receive()
sys.modules["prime_rl.trainer.rl.train"] = types.ModuleType("train")
sys.modules["prime_rl.trainer.rl.train"].train = train
runpy.run_module("turnpack_trainers.prime_rl_main", run_name="__main__", alter_sys=True)
"""


def test_prime_rl(tmp_path):
    """prime-rl's own configuration takes the command's settings, and its transport reads every step of every rank of the folder that they name."""
    prime = checkout("TURNPACK_PRIME_RL", "prime-rl")
    for module in ("pydantic_config", "msgspec", "zmq", "loguru"):
        need(module)
    batch(tmp_path, "--target", "prime-rl", "--ranks", "2", "--seq-len", "4096", "--groups-per-step", "1")
    steps = len(list((tmp_path / "batch" / "rollouts").iterdir()))
    (command,) = commands("prime-rl")
    command = command.replace("STEPS", str(steps)).replace("MODEL", str(TUTORIAL / "model")).replace("LENGTH", "4096").replace("…", "")
    launcher, arguments = command.split("-m turnpack_trainers.prime_rl_main ")
    assert launcher == "torchrun --nproc-per-node RANKS "
    assert (prime / "src/prime_rl/trainer/rl/train.py").is_file()
    # It needs a GPU for each rank: its configuration and its transport stand for the whole.
    (tmp_path / "dry.py").write_text(PRIME_RL_DRY.replace("RANKS", "2"))
    env = {"PYTHONPATH": f"{prime}/packages/prime-rl-configs/src:{prime}/src", "WORLD_SIZE": "2"}
    said = run("python dry.py " + arguments, tmp_path, **env).splitlines()
    read = [line.split() for line in said if line.startswith("rank")]
    assert len(read) == 2 * steps and sum(int(r[5]) for r in read) > 0
    packs = {}
    for r in read:
        packs.setdefault(r[3], set()).add(r[4])
    assert all(len(n) == 1 for n in packs.values()), "ranks take as many packs"
    for before, after, more, why in (("--output-dir", "--output-dirs", {}, "output.dirs"), (f"--max-steps {steps}", "", {}, f"set --max-steps to {steps}"),
                                     ("filesystem", "zmq", {}, "type filesystem"), ("4096", "2048", {}, "packed to --seq-len 4096"), ("", "", {"WORLD_SIZE": "4"}, "of 2 ranks, and 4 processes"),
                                     ("", "", {"TURNPACK_TOKENIZER": "sha256:zz"}, "made with the tokenizer sha256:"), ("", "", {"TURNPACK_TEMPERATURE": "0.7"}, "the temperature 1,"),
                                     ("", "", {"TURNPACK_MIN_VERSION": "9"}, "policy version (unknown|[0-8]), 9 is the oldest")):
        with pytest.raises(AssertionError, match=why):
            run("python dry.py " + arguments.replace(before, after), tmp_path, **{**env, **more})


# Kernels and tools that need a GPU stand in, and the names of a later Python.
MEGATRON_START = """
import runpy, sys
sys.path[:0] = ["TESTS"]
import torch, transformers, datasets  # they ask for specs of what stands in
from kit import Absent, as_of_python_3_12
as_of_python_3_12()
sys.meta_path.insert(0, Absent("transformer_engine", "modelopt", "diffusers", "megatron.energon"))
runpy.run_module("turnpack_trainers.megatron", run_name="__main__", alter_sys=True)
"""


def test_megatron(tmp_path):
    """Megatron-Bridge's own recipe and configuration take the command's settings; what does not fit packs is refused."""
    bridge, core = checkout("TURNPACK_MEGATRON_BRIDGE", "Megatron-Bridge"), checkout("TURNPACK_MEGATRON_LM", "Megatron-LM")
    for module in ("torch", "einops", "transformers", "datasets", "omegaconf", "hydra", "wandb", "tensorboard"):
        need(module)
    batch(tmp_path, "--target", "megatron", "--seq-len", "4096", "--estimator", "none")
    (tmp_path / "start.py").write_text(MEGATRON_START.replace("TESTS", str(TRAINERS / "tests")))
    (command,) = commands("megatron")
    command = command.replace("torchrun --nproc-per-node GPUS -m turnpack_trainers.megatron", "python start.py")
    command = command.replace("RECIPE", "vanilla_gpt_pretrain_config").replace("LENGTH", "4096").replace("CHECKPOINT", "c").replace("STEPS", "2")
    env = {"PYTHONPATH": f"{bridge}/src:{core}"}
    said = run(command.replace("…", "--dry-run"), tmp_path, **env)
    assert "packed_sequence_size: 4096" in said and "train_iters: 2" in said and "pretrained_checkpoint: c" in said
    with pytest.raises(AssertionError, match="micro_batch_size=2 does not fit packs"):
        run(command.replace("…", "train.micro_batch_size=2 --dry-run"), tmp_path, **env)
