"""The agent loop of swe-rl (OpenClaw-RL at 0d034dd) against that of `swerl eval`.

    TURNPACK_OPENCLAW=CHECKOUT TURNPACK_SWERL=BINARY python3 internal/oracle/diff_swerl_loop.py

CHECKOUT is a clone of https://github.com/Gen-Verse/OpenClaw-RL at that commit, BINARY
`go build ./examples/swerl`. One policy that is scripted, one pool and node of `swerl`
with a repository in a folder: the reference's own eval_swe.py, with its own client and
swebench.yaml, then ours with the same file. Messages, commands, patches, rewards and
results.jsonl must be the same. litellm, slime, httpx and loguru are stand-ins of a few
lines; needs jinja2, yaml and git.
"""

import asyncio, contextlib, json, os, pathlib, re, subprocess, sys, tempfile, threading, types, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached"
FIX = "sed -i 's/a - b/a + b/' calc.py"
PLANS = [
    ["cat calc.py", FIX + " && python3 run_tests.py", SUBMIT],
    ["cat missing.py", "sed -i 's/a - b/a * b/' calc.py", SUBMIT],
    [FIX, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"],
    [None, "two\n```\nand\n```bash\nblocks", "python3 -c \"print('é' * 12345)\"", "python3 -c \"print('y' * 9999)\"", "printf 'no end'", SUBMIT],
    ["sleep 0"] * 3 + [FIX] + ["true"] * 16,
]


class Policy(BaseHTTPRequestHandler):
    def do_POST(self):
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        plan = PLANS[int(re.search(r"plan number (\d)", messages[1]["content"]).group(1))]
        command = plan[sum(m["role"] == "assistant" for m in messages)]
        text = "THOUGHT: nothing to run" if command is None else "THOUGHT: go on\n\n```bash\n%s\n```" % command
        body = json.dumps({"id": "r", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def post(url, payload):
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(payload).encode(), {"Content-Type": "application/json"})) as r:
        return json.loads(r.read())


def stand_ins(api):
    async def acompletion(model, messages, **kwargs):
        out = await asyncio.to_thread(post, api + "/chat/completions", {"model": model, "messages": messages})
        message = types.SimpleNamespace(content=out["choices"][0]["message"]["content"])
        return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)])

    async def ask(url, payload, max_retries=1, **_):
        return await asyncio.to_thread(post, url, payload)

    class Silent:
        def __getattr__(self, _):
            return lambda *a, **k: None

    http = types.ModuleType("slime.utils.http_utils")
    http.post, http._http_client = ask, object()
    utils = types.ModuleType("slime.utils")
    utils.http_utils = http
    for name, module in {"litellm": types.SimpleNamespace(acompletion=acompletion), "loguru": types.SimpleNamespace(logger=Silent()),
                         "httpx": types.ModuleType("httpx"), "slime": types.ModuleType("slime"), "slime.utils": utils, "slime.utils.http_utils": http}.items():
        sys.modules[name] = module


@contextlib.contextmanager
def server(binary, *args):
    p = subprocess.Popen([binary, *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield "http://" + p.stdout.readline().split()[-1]
    finally:
        p.terminate()
        p.wait()


def runs(folder):
    out, results = {}, []
    for path in pathlib.Path(folder).glob("*/traj.json"):
        t = json.loads(path.read_text())
        for s in t["step_debug"]:
            del s["start_ts"], s["end_ts"]
        for m in t["messages"]:
            assert set(m) == {"role", "content"}, m
        patch = path.with_name("patch.diff")
        result = t["info"].pop("eval_result")
        t["evaluation"] = None if result is None else [result["resolved"], result["returncode"], result["output"]]
        out[t["info"]["instance_id"]] = [t, patch.read_text() if patch.exists() else None]
    for line in (pathlib.Path(folder) / "results.jsonl").read_text().split("\n"):
        row = json.loads(line)
        assert isinstance(row.pop("elapsed"), float) and pathlib.Path(row.pop("run_dir")).is_dir()
        results.append(row)
    return out, results


def main():
    root, binary = pathlib.Path(os.environ["TURNPACK_OPENCLAW"]) / "swe-rl", os.path.abspath(os.environ["TURNPACK_SWERL"])
    with tempfile.TemporaryDirectory() as tmp:
        repo = pathlib.Path(tmp, "images", "demo")
        repo.mkdir(parents=True)
        (repo / "calc.py").write_text("def add(a, b):\n    return a - b\n")
        (repo / "run_tests.py").write_text("import sys\nsys.dont_write_bytecode = True\nimport calc\nassert calc.add(2, 3) == 5\nprint('ok')\n")
        for args in ["init -q", "add -A", "-c user.name=t -c user.email=t@t commit -qm begin"]:
            subprocess.run(["git", *args.split()], cwd=repo, check=True)
        data = pathlib.Path(tmp, "data.jsonl")
        data.write_text("".join(json.dumps({"instance_id": f"demo__{i}", "image_name": "demo", "problem_statement": f"plan number {i} <b> & é", "eval_script": "cd /testbed && python3 run_tests.py"}) + "\n" for i in range(len(PLANS))))
        policy = ThreadingHTTPServer(("127.0.0.1", 0), Policy)
        threading.Thread(target=policy.serve_forever, daemon=True).start()
        api = f"http://127.0.0.1:{policy.server_port}/v1"
        with server(binary, "serve-exec", "--listen", "127.0.0.1:0", "--driver", "local", "--root", str(repo.parent)) as node, \
                server(binary, "serve-pool", "--listen", "127.0.0.1:0", "--nodes", node) as pool:
            config = str(root / "swebench.yaml")
            common = ["--data", str(data), "--model", "openai/policy", "--api-base", api, "--max-concurrent", "1"]
            subprocess.run([binary, "eval", *common, "--pool", pool, "--config", config, "--output-dir", tmp + "/ours"], check=True, stdout=subprocess.DEVNULL)
            stand_ins(api)
            sys.path[:0] = [str(root), str(root / "eval")]
            sys.argv = ["eval_swe.py", *common, "--env-server-url", pool, "--swe-config", config, "--output-dir", tmp + "/theirs"]
            import eval_swe
            with contextlib.redirect_stdout(None):
                asyncio.run(eval_swe.main())
        policy.shutdown()
        ours, theirs = runs(tmp + "/ours"), runs(tmp + "/theirs")
        bad = 0
        for i in sorted(theirs[0]):
            if ours[0].get(i) != theirs[0][i]:
                bad += 1
                print("DIFFERENT", i)
                for k in theirs[0][i][0]:
                    a, b = ours[0][i][0].get(k), theirs[0][i][0][k]
                    if a != b:
                        print(" ", k, "\n   ours  ", str(a)[:2000], "\n   theirs", str(b)[:2000])
                if ours[0][i][1] != theirs[0][i][1]:
                    print("  patch", ours[0][i][1], theirs[0][i][1])
        if ours[1] != theirs[1]:
            bad += 1
            print("DIFFERENT results.jsonl", ours[1], theirs[1])
        keys = [sorted(json.loads(pathlib.Path(tmp, d, "summary.json").read_text())) for d in ("ours", "theirs")]
        if set(keys[1]) - set(keys[0]):
            bad += 1
            print("summary.json lacks", set(keys[1]) - set(keys[0]))
        steps = sum(len(t[0]["messages"]) for t in theirs[0].values())
        print(f"swe-rl's loop: {len(theirs[0])} attempts, {steps} messages, {bad} differences")
        sys.exit(bad > 0)


main()
