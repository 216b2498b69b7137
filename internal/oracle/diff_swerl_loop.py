"""The agent loop of swe-rl (OpenClaw-RL at 0d034dd) against that of `swerl eval`, each on
the servers of both.

    TURNPACK_OPENCLAW=CHECKOUT python3 internal/oracle/diff_swerl_loop.py

CHECKOUT is Gen-Verse/OpenClaw-RL at 0d034dd (git clone, git checkout 0d034dd). One policy
that is scripted; the reference's own eval_swe.py, with its own client and swebench.yaml,
and ours with the same file, on its pool and exec server, on ours with the same stand-in
for docker, and on ours with the local driver. Messages, commands, patches, rewards,
artifacts and results.jsonl must be the same in all six. litellm, slime, httpx and loguru
are stand-ins of a few lines; needs flask, requests, jinja2, yaml and git.
"""

import asyncio, contextlib, json, os, pathlib, re, shutil, subprocess, sys, threading, types, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import diff_sandbox as boxes

REFERENCE = pathlib.Path(os.environ["TURNPACK_OPENCLAW"]).absolute() / "swe-rl"

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


def runs(folder):
    out, results = {}, []
    for path in pathlib.Path(folder).glob("*/traj.json"):
        t = json.loads(path.read_text())
        for s in t["step_debug"]:
            del s["start_ts"], s["end_ts"]
        for m in t["messages"]:
            assert set(m) == {"role", "content"}, m
        t["meta"] = sorted(json.loads(path.with_name("meta.json").read_text()))
        patch = path.with_name("patch.diff")
        result = t["info"].pop("eval_result")
        t["evaluation"] = None if result is None else [result["resolved"], result["returncode"], result["output"]]
        out[t["info"]["instance_id"]] = [t, patch.read_text() if patch.exists() else None]
    for line in (pathlib.Path(folder) / "results.jsonl").read_text().split("\n"):
        row = json.loads(line)
        assert isinstance(row.pop("elapsed"), float) and pathlib.Path(row.pop("run_dir")).is_dir()
        results.append(row)
    return out, results


def theirs(api, args):
    """eval_swe.py, in a process of its own."""
    stand_ins(api)
    sys.path[:0] = [str(REFERENCE), str(REFERENCE / "eval")]
    sys.argv = ["eval_swe.py", *args]
    import eval_swe
    with contextlib.redirect_stdout(None):
        asyncio.run(eval_swe.main())


def task():
    repo = boxes.WORK / "images" / "calc"
    repo.mkdir()
    (repo / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (repo / "run_tests.py").write_text("import sys\nsys.dont_write_bytecode = True\nimport calc\nif calc.add(2, 3) != 5:\n    sys.exit('not 5')\nprint('ok')\n")
    for args in ["init -q", "add -A", "-c user.name=t -c user.email=t@t commit -qm begin"]:
        subprocess.run(["git", *args.split()], cwd=repo, check=True)
    data = boxes.WORK / "data.jsonl"
    data.write_text("".join(json.dumps({"instance_id": f"demo__{i}", "image_name": "calc", "problem_statement": f"plan number {i} <b> & é", "eval_script": "python3 run_tests.py"}) + "\n" for i in range(len(PLANS))))
    return data


def compare(name, found, wanted):
    bad = 0
    for i in sorted(wanted[0]):
        mine, theirs = found[0].get(i), wanted[0][i]
        if mine == theirs:
            continue
        bad += 1
        print("DIFFERENT", name, i)
        for k in theirs[0]:
            a, b = (mine or [{}])[0].get(k), theirs[0][k]
            if a != b:
                print(" ", k, "\n   found    ", str(a)[:2000], "\n   reference", str(b)[:2000])
        if mine and mine[1] != theirs[1]:
            print("  patch", mine[1], theirs[1])
    if found[1] != wanted[1]:
        bad += 1
        print("DIFFERENT", name, "results.jsonl", found[1], wanted[1])
    if set(wanted[2]) - set(found[2]):
        bad += 1
        print(name, "summary.json lacks", set(wanted[2]) - set(found[2]))
    return bad


def main():
    boxes.prepare()
    data = task()
    policy = ThreadingHTTPServer(("127.0.0.1", 0), Policy)
    threading.Thread(target=policy.serve_forever, daemon=True).start()
    api = f"http://127.0.0.1:{policy.server_port}/v1"
    config = str(REFERENCE / "swebench.yaml")
    common = ["--data", str(data), "--model", "openai/policy", "--api-base", api, "--max-concurrent", "1"]
    wanted, bad, pairs = None, 0, 0
    for node, pool in (("theirs", "theirs"), ("docker", "ours"), ("local", "ours")):
        e = boxes.exec_server(node)
        p = boxes.pool_server(pool, e.url)
        try:
            for loop in ("theirs", "ours"):
                out = str(boxes.WORK / f"out-{node}-{loop}")
                if loop == "theirs":
                    args = [sys.executable, __file__, "--theirs", api, *common, "--env-server-url", p.url, "--swe-config", config, "--output-dir", out]
                else:
                    args = [boxes.WORK / "swerl", "eval", *common, "--pool", p.url, "--config", config, "--output-dir", out]
                r = subprocess.run([str(a) for a in args], capture_output=True, text=True)
                if r.returncode:
                    sys.exit(f"{loop} loop, {node} node: {r.stdout[-2000:]} {r.stderr[-4000:]}")
                found = (*runs(out), sorted(json.loads(pathlib.Path(out, "summary.json").read_text())))
                wanted = wanted or found  # the reference on its own servers comes first
                bad += compare(f"{loop} loop on {node} node, {pool} pool:", found, wanted)
                pairs += 1
        finally:
            p.end()
            e.end()
    policy.shutdown()
    if bad:
        sys.exit(f"{bad} differences; logs are in {boxes.WORK}")
    shutil.rmtree(boxes.WORK)
    steps = sum(len(t[0]["messages"]) for t in wanted[0].values())
    print(f"{pairs} pairings of loop and servers give the same {len(wanted[0])} attempts, {steps} messages")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        shutil.rmtree(boxes.WORK)
        theirs(sys.argv[2], sys.argv[3:])
    else:
        main()
