"""Runs OpenClaw-RL's sandbox client and servers against ours, each with each.

usage: TURNPACK_OPENCLAW=CHECKOUT python diff_sandbox.py

CHECKOUT is Gen-Verse/OpenClaw-RL at 0d034dd (git clone, git checkout 0d034dd); flask and
requests are what its servers need. Its client (swe-rl/swe_env_client.py) and ours
(rollout/sandbox/swerl) do the same steps with its pool server and ours, on its exec server
and ours, which run a stand-in for docker from PATH, and on our local driver. All must
answer the same; what ours mends is then shown to differ.
"""
import asyncio
import importlib.util
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import requests

CHECKOUT = Path(os.environ.get("TURNPACK_OPENCLAW") or sys.exit(__doc__)) / "swe-rl"
ROOT = Path(__file__).resolve().parents[2]
WORK = Path(tempfile.mkdtemp(prefix="sandbox-"))

# Containers are folders; docker exec runs in them.
DOCKER = r"""#!/bin/sh
state=%(state)s; images=%(images)s
here() { for d in "$state/$1"; do [ -d "$d" ] || { echo "Error response from daemon: No such container: $1" >&2; exit 1; }; done; }
case "$1" in
info) ls "$state" | wc -l ;;
images) ls "$images" | sed 's/$/:latest/' ;;
run) shift; while [ $# -gt 0 ]; do case "$1" in
    --name) name=$2; shift 2 ;; -w|--pids-limit|--memory|--label) shift 2 ;; -d) shift ;; *) break ;; esac; done
  [ -d "$images/$1" ] || { echo "Unable to find image '$1' locally" >&2; exit 125; }
  mkdir "$state/$name" && cp -a "$images/$1" "$state/$name/testbed" && echo "$name" ;;
exec) shift; w=/testbed; while [ $# -gt 0 ]; do case "$1" in
    -w) w=$2; shift 2 ;; -e) export "$2"; shift 2 ;; -i) shift ;; *) break ;; esac; done
  here "$1"; cd "$state/$1$w" || exit 126; shift; exec "$@" ;;
rm) rm -rf "$state/$3" ;;
ps) ls "$state" ;;
inspect) shift 2; case "$1" in *State*) here "$2"; echo true false ;; esac ;;
esac
"""

STEPS = [
    {"op": "exec", "command": "cat a.py; echo to-stderr >&2; exit 3"},
    {"op": "exec", "command": "echo $ONE; cat deep.py; echo é 日本 🙂", "cwd": "/testbed/pkg", "env": {"ONE": "1 & <2>"}},
    {"op": "exec", "command": "sleep 3", "timeout": 1},
    {"op": "exec", "command": "echo 'y = 2' >> a.py; printf 'no newline' > new.py; rm pkg/deep.py; git status --short"},
    {"op": "diff"},
    {"op": "evaluate", "patch": "DIFF", "evalscript": "cat a.py new.py; test ! -e pkg/deep.py"},
    {"op": "evaluate", "patch": "DIFF", "evalscript": "for i in $(seq 999); do echo line $i é; done; echo end >&2; exit 4"},
    {"op": "evaluate", "patch": "not a patch", "evalscript": "true"},
    {"op": "evaluate", "patch": "", "evalscript": "true"},
    {"op": "evaluate", "patch": "diff --git a/q b/q\n--- a/q\n+++ b/q\n@@ -1 +1 @@\n-1\n+2\n", "evalscript": "true"},
    {"op": "evaluate", "patch": "DIFF", "evalscript": "sleep 3", "timeout": 1},
    {"op": "evaluate", "patch": "DIFF", "evalscript": ""},
    {"op": "exec", "command": "git log --format=%s; false"},
]
# What the reference gets wrong: an ignored file that stays, a line EOF that ends the script.
MENDED = [
    {"op": "exec", "command": "echo 'y = 2' >> a.py; echo x > left.ign"},
    {"op": "diff"},
    {"op": "evaluate", "patch": "DIFF", "evalscript": "test ! -e left.ign"},
    {"op": "evaluate", "patch": "DIFF", "evalscript": "V=1\ncat <<'EOF' > /dev/null\nx\nEOF\ntest \"$V\" = 1"},
]


def port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A process that is up when its /healthz answers."""

    def __init__(self, args, n):
        self.url = f"http://127.0.0.1:{n}"
        env = dict(os.environ, PATH=f"{WORK}:{os.environ['PATH']}", HOME=str(WORK))  # no profile of a user's own
        self.log = open(WORK / f"log-{n}", "w+")
        self.process = subprocess.Popen([str(a) for a in args], env=env, stdout=self.log, stderr=subprocess.STDOUT)
        for _ in range(200):
            try:
                requests.get(self.url + "/healthz", timeout=5)
                return
            except requests.ConnectionError:
                time.sleep(0.05)
        sys.exit(f"{args} does not answer: {self.text()}")

    def text(self):
        self.log.flush()
        return Path(self.log.name).read_text()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def exec_server(kind):
    n = port()
    if kind == "theirs":
        return Server([sys.executable, CHECKOUT / "server" / "swe_exec_server.py", "--host", "127.0.0.1", "--port", n], n)
    args = [WORK / "swerl", "serve-exec", "--listen", f"127.0.0.1:{n}", "--driver", kind]
    return Server(args + (["--root", WORK / "images", "--work", WORK / "local"] if kind == "local" else []), n)


def pool_server(kind, node):
    n = port()
    if kind == "theirs":
        return Server([sys.executable, CHECKOUT / "server" / "swe_env_pool_server.py", "--host", "127.0.0.1", "--port", n, "--exec-server-urls", node], n)
    return Server([WORK / "swerl", "serve-pool", "--listen", f"127.0.0.1:{n}", "--nodes", node], n)


def their_client(url, steps):
    """swe_env_client.py as it is; what it imports from slime posts with requests."""
    async def post(url, payload, max_retries=60):
        r = await asyncio.to_thread(requests.post, url, json=payload, timeout=120)
        r.raise_for_status()
        return r.json()

    for name in ("slime", "slime.utils", "slime.utils.http_utils"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["slime.utils.http_utils"].post = post
    spec = importlib.util.spec_from_file_location("swe_env_client", CHECKOUT / "swe_env_client.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    async def run():
        client, out, patch = module.SweEnvClient(url), [], ""
        lease = (await client.allocate("demo", "x"))["lease_id"]
        await client.heartbeat(lease)
        for s in steps:
            more = {k: s[k] for k in ("cwd", "timeout", "env") if k in s}
            if s["op"] == "exec":
                r = await client.exec(lease, s["command"], **more)
                out.append({k: r[k] for k in ("returncode", "output")})
            elif s["op"] == "diff":
                patch = await client.diff(lease, **more)
                out.append({"patch": patch})
            else:
                r = await client.evaluate(lease, patch if s["patch"] == "DIFF" else s["patch"], s["evalscript"], **more)
                out.append({k: r[k] for k in ("resolved", "returncode", "output", "error") if k in r})
        await client.close(lease)
        return out
    return asyncio.run(run())


def our_client(url, steps):
    (WORK / "steps").write_text(json.dumps(steps))
    env = dict(os.environ, SWE_ENV_SERVER_URL=url, TURNPACK_SANDBOX_STEPS=str(WORK / "steps"), TURNPACK_SANDBOX_OUT=str(WORK / "out"), TURNPACK_SANDBOX_IMAGE="demo")
    r = subprocess.run([WORK / "client", "-test.run", "^TestInterop$"], env=env, capture_output=True, text=True)
    if r.returncode:
        sys.exit("our client: " + r.stdout)
    return json.loads((WORK / "out").read_text())


def prepare():
    for name in ("images/demo/pkg", "state"):
        (WORK / name).mkdir(parents=True)
    for name, text in {"a.py": "x = 1\n", "pkg/deep.py": "z = 3\n", ".gitignore": "*.ign\n"}.items():
        (WORK / "images" / "demo" / name).write_text(text)
    git = ["git", "-C", WORK / "images" / "demo", "-c", "user.name=n", "-c", "user.email=e@x"]
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run(git + args, check=True)
    (WORK / "docker").write_text(DOCKER % {"state": WORK / "state", "images": WORK / "images"})
    (WORK / "docker").chmod(0o755)
    env = dict(os.environ, CGO_ENABLED="0")
    subprocess.run(["go", "build", "-o", WORK / "swerl", "./examples/swerl"], cwd=ROOT, env=env, check=True)
    subprocess.run(["go", "test", "-c", "-o", WORK / "client", "./rollout/sandbox/swerl"], cwd=ROOT, env=env, check=True)


def main():
    prepare()
    wanted, runs, differ = None, 0, 0
    for node, pool in itertools.product(("theirs", "docker", "local"), ("theirs", "ours")):
        e = exec_server(node)
        p = pool_server(pool, e.url)
        try:
            for name, client in (("theirs", their_client), ("ours", our_client)):
                got = client(p.url, STEPS)
                wanted = wanted or got  # the reference's three together come first
                runs += 1
                for step, a, b in zip(STEPS, wanted, got, strict=True):
                    if a != b:
                        differ += 1
                        print(f"node {node}, pool {pool}, client {name}: {step}\n  reference {a}\n  found     {b}")
                left = list((WORK / "state").iterdir()) + [x for x in (WORK / "local").glob("*")]
                if left:
                    differ += 1
                    print(f"node {node}, pool {pool}, client {name}: containers are left: {left}")
                mended = [r["resolved"] for r in client(p.url, MENDED) if "resolved" in r]
                if mended != [node != "theirs"] * 2:
                    differ += 1
                    print(f"node {node}, pool {pool}, client {name}: the mended cases are {mended}")
        finally:
            p.end()
            e.end()
    if differ:
        sys.exit(f"{differ} differences in {runs} runs; logs are in {WORK}")
    shutil.rmtree(WORK)
    print(f"{runs} pairings of client, pool and node give the same {len(STEPS)} answers")


if __name__ == "__main__":
    main()
