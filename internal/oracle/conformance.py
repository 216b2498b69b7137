"""Runs every kit through the command and the live references, one line a step.

usage: conformance.py TURNPACK PLUMB SHARED CACHE      (conformance.sh calls it)

SHARED is the folder of kits; CACHE holds templates-kit and tokenizers-kit. A step
compares, counts and prints; what is not at hand is skipped by name. The exit
status is 1 when anything differs.
"""
import gzip
import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
TURNPACK, PLUMB, SHARED, CACHE = *(Path(p).resolve() for p in sys.argv[1:4]), Path(sys.argv[4])
HERE = Path(__file__).resolve().parent
KITS = SHARED / "conformance"
TEMPLATES, TOKENIZERS = CACHE / "templates-kit", CACHE / "tokenizers-kit"
CLOCK = ["--now", "2026-01-15T12:00:00"]


class Skip(Exception):
    """A step that lacks what it compares with."""


def need(*paths):
    for p in paths:
        if not Path(p).exists():
            raise Skip("no " + Path(p).name)


def need_module(*names):
    for n in names:
        if importlib.util.find_spec(n) is None:
            raise Skip("no Python package " + n)


def rows(path):
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return [json.loads(l) for l in f if l.strip()]


def plumb(verb, *args):
    p = subprocess.run([PLUMB, verb, "--errors=data", *map(str, args)], capture_output=True)
    if p.returncode:
        raise AssertionError(f"plumb {verb} ended with {p.returncode}: {p.stderr.decode()[:300]}")
    return [json.loads(l) for l in p.stdout.splitlines()]


def script(name, *args, timeout=3600, stderr=subprocess.PIPE):
    p = subprocess.run([sys.executable, str(name if Path(name).is_absolute() else HERE / name), *map(str, args)], stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=timeout)
    said = (p.stdout.strip() or (p.stderr or "").strip()).splitlines() or [""]
    if p.returncode:
        raise AssertionError(" / ".join(said)[:600])
    return next((l for l in said if " differ" in l), said[-1])


def close(want, got, tol):
    """Numbers within tol·max(1, |want|); objects may hold more than is wanted."""
    if isinstance(want, bool) or isinstance(got, bool) or want is None:
        return want is got
    if isinstance(want, (int, float)):
        return isinstance(got, (int, float)) and abs(want - got) <= tol * max(1, abs(want))
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(close(w, g, tol) for w, g in zip(want, got))
    if isinstance(want, dict):
        return isinstance(got, dict) and all(k in got and close(v, got[k], tol) for k, v in want.items())
    return want == got


class Count:
    """Compared and differing cases of a step."""

    def __init__(self):
        self.n = self.bad = self.unsupported = 0
        self.first = []

    def add(self, same, what):
        self.n += 1
        if not same:
            self.bad += 1
            self.first.append(str(what)[:160])

    def done(self, note=""):
        text = f"{self.n} cases, {self.bad} differ" + (f", {self.unsupported} unsupported" if self.unsupported else "") + note
        if self.bad:
            raise AssertionError(text + ": " + "; ".join(self.first[:3]))
        if not self.n:
            raise AssertionError("nothing was compared")
        return text


def expected(case):
    e = case["expected"]
    return e if isinstance(e, dict) else {"expected": e}


def kit(verb, file, want=expected, tol=lambda case: 1e-9, flags=()):
    """A step that feeds a kit file to a verb and compares the fields of want."""
    def run():
        path = KITS / file
        need(path)
        c = Count()
        cases, answers = rows(path), plumb(verb, *flags, path)
        assert len(cases) == len(answers), f"{len(cases)} lines in, {len(answers)} out"
        for case, answer in zip(cases, answers):
            if "unsupported" in answer:
                c.unsupported += 1
                continue
            c.add(case["id"] == answer["id"] and close(want(case), answer, tol(case)), case["id"])
        return c.done()
    return run


def advantage_tolerance(case):
    near = any(g["family"] in ("near7", "near13") for g in case["groups"])
    return 1e-4 if near and case["estimator"].startswith("nemo_grpo_") else 1e-9


def prompt_sections(case):
    return {k: v for k, v in case["expected"].items() if k not in ("user_prompt_len", "user_prompt_sha256")}


def ssr_expectation(case):
    return {k: case[k] for k in ("expected_r_inject", "expected_r_solve", "best_p_grid_0.001", "best_value")}


def merge(mode, *flags):
    def run():
        cases, check = KITS / "lineage" / "cases.jsonl.gz", KITS / "lineage" / "check.py"
        need(cases, check)
        with tempfile.TemporaryDirectory() as tmp:
            out = Path(tmp) / "out.jsonl"
            with open(out, "wb") as f:
                subprocess.run([PLUMB, "merge", *flags, str(cases)], stdout=f, check=True)
            p = subprocess.run([sys.executable, str(check), str(cases), str(out), "--mode", mode, "--json"], capture_output=True, text=True)
            s = json.loads(p.stdout)
            if p.returncode:
                raise AssertionError(f"{s['cases']} cases, {s['cases'] - s['pass_' + mode]} differ: {s['failed'][:3]}")
            return f"{s['cases']} cases, 0 differ, {s['rows']} rows (fewest exact: {s['rows_opt']})"
    return run


def imports():
    data = SHARED / "data" / "trajectories"
    need(data)
    want = {e["id"]: e for e in rows(data / "expected.jsonl")}
    got = {a["id"]: a for a in plumb("import", "--root", data, data)}
    c = Count()
    for i in want.keys() | got.keys():
        w = {k: v for k, v in want.get(i, {"missing": 1}).items() if k != "traj_id"}
        c.add(close(w, got.get(i), 0), i)
    return c.done()


def contexts():
    """Tools and what each turn saw, against a reader of the raw files that shares nothing with the importers."""
    data = SHARED / "data" / "trajectories"
    need(data / "expected.jsonl")
    p = subprocess.run([sys.executable, str(HERE / "contexts.py"), str(data)], capture_output=True, text=True)
    if p.returncode:
        raise AssertionError(p.stderr.strip()[-300:])
    want = {e["id"]: e for e in map(json.loads, p.stdout.splitlines())}
    got = {a["id"]: a for a in plumb("import", "--root", data, data)}
    c, turns = Count(), 0
    for i in sorted(want.keys() | got.keys()):
        w, g = want.get(i, {}), got.get(i, {})
        c.add(w.get("tools_sha256") == g.get("tools_sha256"), i + " tools")
        c.add(w.get("contexts_sha256") == g.get("contexts_sha256"), i + " contexts")
        turns += len(w.get("contexts_sha256", []))
    return c.done(f" ({turns} turns)")


# ---- chat templates -----------------------------------------------------------------------------------------------
def render_answers():
    need(KITS / "templates", TEMPLATES)
    return {a["id"]: a for a in plumb("render", "--templates", TEMPLATES, "--conversations", KITS / "templates" / "conversations.json", *CLOCK, KITS / "templates" / "goldens.jsonl.gz")}


def same_render(want, got):
    if not want["ok"]:
        e = got.get("error")
        return e is not None and e["kind"] == want["error"]["kind"] and (e["kind"] != "raise_exception" or e["message"] == want["error"]["message"])
    spans = want.get("generation_spans")
    return got.get("text") == want["text"] and (spans is None or sorted(spans) == sorted(got["generation_spans"]))


def templates_stored():
    answers, c = render_answers(), Count()
    for want in rows(KITS / "templates" / "goldens.jsonl.gz"):
        c.add(same_render(want, answers[want["id"]]), want["id"])
    return c.done()


def templates_live():
    """Every golden rendered again by transformers, compared with the kit and the command."""
    need_module("transformers", "jinja2")
    answers, c = render_answers(), Count()
    sys.path.insert(0, str(KITS / "templates"))
    import oracle
    conversations = {v["id"]: v for v in json.loads((KITS / "templates" / "conversations.json").read_text(encoding="utf-8"))}
    sources = {}
    for row in rows(KITS / "templates" / "goldens.jsonl.gz"):
        source = sources.setdefault(row["template"], (TEMPLATES / (row["template"] + ".jinja")).read_bytes().decode())
        live = {"id": row["id"], "ok": True}
        try:
            live["text"] = oracle.render(source, oracle.prepare(conversations[row["conversation"]], row), row)[0]
        except Exception as e:
            live = {"id": row["id"], "ok": False, "error": oracle.error_of(e)}
        same = live["ok"] == row["ok"] and (live["text"] == row["text"] if live["ok"] else live["error"]["kind"] == row["error"]["kind"])
        c.add(same and same_render(live, answers[row["id"]]), row["id"])
    import transformers
    return c.done(f" (transformers {transformers.__version__})")


def provenance():
    answers, c = render_answers(), Count()
    for p in rows(KITS / "templates" / "provenance.jsonl.gz"):
        got = {f["path"]: f["spans"] for f in answers[p["id"]].get("fields", [])}
        for f in p["fields"]:
            if f["status"] in ("exact", "absent") and not f.get("shared"):
                c.add((got.get(f["path"]) or []) == (f.get("spans") or []), p["id"] + f["path"])
        if p["complete"]:
            c.add(got.keys() <= {f["path"] for f in p["fields"]}, p["id"])
    return c.done()


def snippets():
    path = KITS / "templates" / "snippets.jsonl"
    need(path)
    c = Count()
    for want, got in zip(rows(path), plumb("render", "--snippets", *CLOCK, path)):
        want.pop("generation_spans", None)
        c.add(want["id"] == got["id"] and same_render(want, got), want["id"])
    return c.done()


def snippets_live():
    need_module("transformers")
    need(KITS / "templates" / "check_snippets.py")
    return script(KITS / "templates" / "check_snippets.py", KITS / "templates" / "snippets.jsonl")


def templates_random():
    """Random templates, and changed real ones, over random values and the kit's conversations."""
    need_module("transformers", "jinja2")
    need(TEMPLATES, KITS / "templates" / "conversations.json")
    return script("diff_templates.py", PLUMB, os.environ.get("TURNPACK_RANDOM_TEMPLATES", "4000"), 6, TEMPLATES, KITS / "templates" / "conversations.json")


def conversations_random():
    """The real templates over random conversations, with the origin of what they write."""
    need_module("transformers", "jinja2")
    need(TEMPLATES, KITS / "templates" / "oracle.py")
    return script("diff_conversations.py", PLUMB, 3000, TEMPLATES, KITS / "templates")


def templates_areas():
    """Random templates, dense in one area of the language after another."""
    need_module("transformers", "jinja2")
    return script("diff_language.py", PLUMB, os.environ.get("TURNPACK_AREA_TEMPLATES", "400"), 8)


def rollouts():
    """Ids of every template with three tokenizers, under parity and under the guard."""
    need_module("transformers", "jinja2")
    need(TEMPLATES, KITS / "templates" / "conversations.json")
    return script("diff_rollouts.py", PLUMB, TEMPLATES, KITS / "templates" / "conversations.json", *map(definition, ("qwen3", "llama3", "gptoss")))


def turns():
    """What random rollouts train with every template, from text and from recorded ids."""
    need_module("transformers", "jinja2")
    need(TEMPLATES)
    return script("diff_turns.py", PLUMB, 20, TEMPLATES, HERE.parents[1] / "tokenize" / "embedded" / "tokenizer.json")


def certificates():
    """docs/templates.md says what the command says today."""
    need(TEMPLATES)
    p = subprocess.run([sys.executable, str(HERE / "templates_doc.py"), str(TURNPACK), str(TEMPLATES), str(definition("qwen3"))], capture_output=True, text=True, check=True)
    page = (HERE.parents[1] / "docs" / "templates.md").read_text(encoding="utf-8")
    c = Count()
    for now, then in itertools.zip_longest(p.stdout.splitlines(), page.splitlines()):
        c.add(now == then, now)
    return c.done(" (lines of docs/templates.md)")


# ---- tokenizers ---------------------------------------------------------------------------------------------------
def definition(name):
    """The tokenizer's file, unpacked into the cache where the kit stores it packed."""
    d = TOKENIZERS / name
    packed, plain = KITS / "tokenizers" / (name + ".tokenizer.json.zst"), KITS / "tokenizers" / (name + ".tokenizer.json")
    for path in (plain, d / "tokenizer.json", d / "tiktoken.model"):
        if path.exists():
            return path if path.suffix == ".json" else d
    need(packed)
    d.mkdir(parents=True, exist_ok=True)
    subprocess.run(["zstd", "-dqf", str(packed), "-o", str(d / "tokenizer.json")], check=True)
    return d / "tokenizer.json"


def tokenizer_names():
    return sorted(p.name[:-len(".jsonl.gz")] for p in (KITS / "tokenizers").glob("*.jsonl.gz"))


def tokenizers_stored(name):
    def run():
        path, cases, c = definition(name), KITS / "tokenizers" / (name + ".jsonl.gz"), Count()
        verbs = [plumb("ids", "--offsets", "--tokenizer", path, cases), plumb("ids", "--literal", "--tokenizer", path, cases),
                 plumb("ids", "--plain", "--tokenizer", path, cases), plumb("decode", "--tokenizer", path, cases)]
        for want, full, literal, plain, decoded in zip(rows(cases), *verbs, strict=True):
            c.add(full["ids"] == want["ids"] and full["offsets"] == want["offsets"] and literal["ids"] == want.get("ids_literal", want["ids"])
                  and plain["ids"] == want.get("ids_plain", want["ids"]) and decoded["text"] == want.get("decoded", want["text"]), want["id"])
        return c.done()
    return run


def tokenizers_live(name):
    """The kit's ids made again by PyPI tokenizers, then random texts against it."""
    def run():
        path, cases = definition(name), KITS / "tokenizers" / (name + ".jsonl.gz")
        if path.is_dir():
            need_module("tiktoken")
            pattern = KITS / "tokenizers" / (name + ".pattern.txt")
            need(pattern)
            return random_texts(path, cases, pattern)
        need_module("tokenizers")
        import tokenizers
        hf, c = tokenizers.Tokenizer.from_file(str(path)), Count()
        for want in rows(cases):
            c.add(hf.encode(want["text"], add_special_tokens=False).ids == want["ids"]
                  and hf.decode(want["ids"], skip_special_tokens=False) == want.get("decoded", want["text"]), want["id"])
        return c.done(f" (tokenizers {tokenizers.__version__}); random: " + random_texts(path, cases))
    return run


def random_texts(path, *args):
    """Minutes of work, whose progress goes straight to the terminal."""
    return script("diff_ids.py", PLUMB, path, os.environ.get("TURNPACK_TEXTS", "1000000"), 1, *args, timeout=None, stderr=None)


def published_ranks(name):
    def run():
        need_module("tiktoken")
        path = TOKENIZERS / "tiktoken" / (name + ".tiktoken")
        need(path)
        return random_texts(path, KITS / "tokenizers" / "qwen3.jsonl.gz")
    return run


def random_definitions():
    need_module("tokenizers")
    # The reference gives some random definitions other ids in each process, so a
    # difference must show every time.
    for left in (2, 1, 0):
        try:
            return definitions_once()
        except AssertionError:
            if not left:
                raise


def definitions_once():
    return script("diff_configs.py", PLUMB, KITS / "tokenizers" / "tiny_bytelevel.tokenizer.json", 60, 20, 1)


# ---- files --------------------------------------------------------------------------------------------------------
def model_folder(tmp):
    folder = Path(tmp) / "qwen3"
    folder.mkdir()
    shutil.copy(definition("qwen3"), folder / "tokenizer.json")
    shutil.copy(KITS / "tokenizers" / "qwen3.tokenizer_config.json", folder / "tokenizer_config.json")
    return folder


def readers():
    """Recorded dumps converted in three modes and read by four Parquet readers."""
    need_module("pyarrow", "polars", "duckdb", "datasets")
    data = SHARED / "data" / "trajectories"
    need(data)
    with tempfile.TemporaryDirectory() as tmp:
        model, files = model_folder(tmp), []
        for mode in ("merged", "perstep", "whole"):
            out = Path(tmp) / mode
            subprocess.run([TURNPACK, "convert", "--model", str(model), "--in", str(data / "mini-swe-agent"), "--in", str(data / "nemo-gym"), "--out", str(out),
                            "--mode", mode, "--on-error", "skip", "--quiet", "--json"], stdout=subprocess.DEVNULL, check=True)
            files += sorted(out.glob("*.parquet"))
        return script("read_parquet.py", *files)


def chat_sets():
    data = SHARED / "data" / "trajectories"
    need(data / "expected.jsonl")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        (tmp / "lines").write_bytes(subprocess.run([PLUMB, "import", "--to", "chat", data], capture_output=True).stdout)
        for layout in "chat", "sharegpt":  # rollouts with pictures are refused, by status 1
            subprocess.run([PLUMB, "import", "--to", layout, "--parquet", tmp / layout, data], capture_output=True)
        return script("read_chats.py", tmp / "lines", tmp / "chat", tmp / "sharegpt")


def merge_random():
    need(KITS / "lineage" / "check.py")
    return script("diff_lineage.py", PLUMB, KITS / "lineage", 300, 1)


def swerl_random():
    """The context manager and the sample building of swe-rl@0d034dd by the kits' rules."""
    need_module("transformers")
    need(KITS / "context_manager", KITS / "seed_parity")
    with tempfile.TemporaryDirectory() as tmp:
        return script("diff_swerl.py", PLUMB, KITS, 1000, model_folder(tmp))


def advantages_random():
    need_module("torch")
    need(CACHE / "peers", KITS / "advantages")
    return script("diff_advantages.py", PLUMB, CACHE / "peers", KITS / "advantages" / "cases.jsonl", 500, 1)


def grades_random():
    need(CACHE / "peers", KITS / "swebench_grading")
    return script("diff_grades.py", PLUMB, CACHE / "peers", KITS / "swebench_grading" / "cases.jsonl", 4000, 1)


def rules_random(name, kit, *args, modules=()):
    """The rules that a kit's README states, on random cases."""
    def run():
        need_module(*modules)
        need(KITS / kit)
        return script(name, PLUMB, *args)
    return run


def views_random():
    need_module("pydantic")
    need(CACHE / "peers")
    return script("diff_views.py", PLUMB, CACHE / "peers", 2000, 1)


def trainer_loaders():
    """The tutorial's rollouts, written for three trainers and taken by their own classes."""
    need_module("torch", "pydantic", "pyarrow")
    need(CACHE / "peers")
    root = HERE.parents[1]
    tutorial = root / "examples" / "tutorial"
    with tempfile.TemporaryDirectory() as tmp:
        for name in ("verl", "skyrl", "areal"):
            out = Path(tmp) / name
            subprocess.run([TURNPACK, "convert", "--model", tutorial / "model", "--in", tutorial / "dumps", "--out", out, "--target", name, "--policy-version", "3", "--json"], stdout=subprocess.DEVNULL, check=True)
            (out / "batch.parquet").rename(Path(tmp) / f"{name}.parquet")
        return script("read_trainers.py", CACHE / "peers", root / "examples" / "trainers", tmp)


def trainers_package():
    """The tests of examples/trainers, with each trainer that this Python has or that a variable names a checkout of (TURNPACK_SLIME, TURNPACK_NEMO_RL)."""
    need_module("pytest", "pyarrow", "torch")
    root = HERE.parents[1]
    env = dict(os.environ, PYTHONPATH=str(root / "examples" / "trainers"), TURNPACK_BIN=str(Path(TURNPACK).resolve()))
    p = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rs", "--disable-warnings", "-p", "no:cacheprovider", root / "examples" / "trainers" / "tests"], capture_output=True, text=True, env=env)
    lines = p.stdout.strip().splitlines()
    if p.returncode:
        raise AssertionError("; ".join(l for l in lines if l.startswith(("FAILED", "ERROR")))[:600] or p.stderr[-300:])
    missing = sorted({re.sub(r".*SKIPPED(?: in part)?: ", "", l) for l in lines if l.startswith("SKIPPED")})
    return lines[-1] + (f"; not run: {'; '.join(missing)}" if missing else "")


def trained_step():
    """The tutorial to its end: captured rollouts, one GRPO step of TRL, and the policy they were sampled from."""
    need_module("torch", "trl", "datasets", "pyarrow")
    tutorial = HERE.parents[1] / "examples" / "tutorial"
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run([TURNPACK, "convert", "--model", tutorial / "model", "--in", tutorial / "dumps", "--out", tmp, "--target", "trl", "--json"], stdout=subprocess.DEVNULL, check=True)
        p = subprocess.run([sys.executable, tutorial / "train.py", Path(tmp) / "batch.parquet", tutorial / "model"], capture_output=True, text=True)
    if p.returncode:
        raise AssertionError(p.stderr[-600:])
    said = p.stdout
    facts = dict(re.findall(r"(at most|loss|norm|probability:|step,) (-?[\d.e-]+)", said))
    if float(facts["at most"]) > 1e-4 or float(facts["norm"]) <= 0 or float(facts["step,"]) <= float(facts["probability:"]):
        raise AssertionError(said)
    return f"loss {facts['loss']}, recorded log probabilities within {facts['at most']} of the trainer's, objective {facts['probability:']} -> {facts['step,']}"


def recipes_random():
    """Recipes, estimators of tokens and loss weights against the trainers' own functions on whole batches."""
    need_module("torch", "pyarrow")
    need(CACHE / "peers")
    return script("diff_recipes.py", TURNPACK, CACHE / "peers", HERE.parents[1] / "examples" / "tutorial" / "model", 40)


def openclaw_recipes():
    """swe-rl and swe-rl-prm against the functions of OpenClaw-RL on whole batches, rows and .pt files."""
    need_module("torch", "pyarrow")
    if not os.environ.get("TURNPACK_OPENCLAW"):
        raise Skip("TURNPACK_OPENCLAW names no checkout of Gen-Verse/OpenClaw-RL at 0d034dd")
    return script("diff_openclaw.py", TURNPACK, os.environ["TURNPACK_OPENCLAW"], HERE.parents[1] / "examples" / "tutorial" / "model", 60)


def stage_recipes():
    """nemotron-pivot against NeMo Gym and NeMo RL, ssr against the paper's formulas, on whole batches."""
    need_module("torch", "pyarrow", "pydantic")
    return script("diff_stages.py", TURNPACK, HERE.parents[1] / "examples" / "tutorial" / "model", 40)


def sandboxes():
    """Client and servers of swe-rl's sandboxes, those of OpenClaw-RL with ours."""
    need_module("flask", "requests")
    if not os.environ.get("TURNPACK_OPENCLAW"):
        raise Skip("TURNPACK_OPENCLAW names no checkout of Gen-Verse/OpenClaw-RL at 0d034dd")
    return script("diff_sandbox.py")


def swerl_loop():
    """The agent loop of swe-rl, that of OpenClaw-RL with ours, each on the servers of both."""
    need_module("flask", "requests", "jinja2", "yaml")
    if not os.environ.get("TURNPACK_OPENCLAW"):
        raise Skip("TURNPACK_OPENCLAW names no checkout of Gen-Verse/OpenClaw-RL at 0d034dd")
    return script("diff_swerl_loop.py")


def exports_random():
    """Random batches for every target, read back without turnpack."""
    need_module("pyarrow", "msgspec")
    return script("diff_exports.py", TURNPACK, HERE.parents[1] / "examples" / "tutorial" / "model", 500)


def go_tests(package, pattern, *modules):
    def run():
        need_module(*modules)
        env = dict(os.environ, TURNPACK_PYTHON=sys.executable, CGO_ENABLED="0")
        p = subprocess.run(["go", "test", "-count=1", "-v", "-run", pattern, package], capture_output=True, text=True, env=env, cwd=HERE.parents[1])
        passed, skipped = p.stdout.count("--- PASS"), p.stdout.count("--- SKIP")
        if p.returncode:
            raise AssertionError("; ".join(l.strip() for l in p.stdout.splitlines() if "--- FAIL" in l)[:300] or p.stderr[:300])
        if not passed:
            raise Skip("no test ran" if not skipped else "its tests skipped themselves")
        return f"{passed} tests pass" + (f", {skipped} skipped" if skipped else "")
    return run


def steps():
    yield "import", imports
    yield "contexts", contexts
    yield "import, variants of formats", lambda: script("diff_variants.py", PLUMB)
    yield "import, random event logs", views_random
    yield "templates, kit", templates_stored
    yield "templates, live", templates_live
    yield "templates, provenance", provenance
    yield "templates, certificates", certificates
    yield "templates, random", templates_random
    yield "templates, by area", templates_areas
    yield "templates, random conversations", conversations_random
    yield "templates, ids", rollouts
    yield "encode, random rollouts", turns
    yield "snippets, kit", snippets
    yield "snippets, live", snippets_live
    for name in tokenizer_names():
        yield f"tokenizer {name}, kit", tokenizers_stored(name)
        yield f"tokenizer {name}, live", tokenizers_live(name)
    for name in ("r50k_base", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"):
        yield f"tokenizer {name}, live", published_ranks(name)
    yield "tokenizers, random definitions", random_definitions
    yield "merge, fork", merge("exact", "--drift", "fork")
    yield "merge, splice", merge("repair", "--drift", "splice", "--max-sub-tokens", "64")
    yield "merge, auto", merge("repair", "--drift", "auto")
    yield "merge, random", merge_random
    yield "window", kit("window", "context_manager/cases.jsonl", tol=lambda c: 0)
    yield "window and samples, random", swerl_random
    yield "advantage", kit("advantage", "advantages/cases.jsonl", lambda c: {"expected": c["expected64"]}, advantage_tolerance)
    yield "weights", kit("weights", "advantages/loss_weights.jsonl", lambda c: {"weights": c["weights"]})
    yield "advantage and weights, random", advantages_random
    yield "advantage, random groups", rules_random("diff_estimators.py", "advantages", KITS / "advantages" / "cases.jsonl", 5000)
    for file in ("length", "truncation", "override_clip", "offpolicy"):
        yield "shape, " + file, kit("shape", f"shaping/{file}.jsonl")
    yield "filter", kit("filter", "shaping/group_filters.jsonl")
    yield "shape and filter, random", rules_random("diff_shaping.py", "shaping", 2000, modules=("torch", "numpy"))
    yield "grade", kit("grade", "swebench_grading/cases.jsonl", tol=lambda c: 0)
    yield "grade, random", grades_random
    for file in ("argument_comparison", "swe_pivot"):
        yield "pivot, " + file, kit("pivot", f"pivot/{file}.jsonl")
    yield "pivot, random", rules_random("diff_pivot.py", "pivot", 4000)
    for file in ("rewards", "checks"):
        yield "ssr, " + file, kit("ssr", f"ssr/{file}.jsonl", tol=lambda c: 1e-12)
    yield "ssr, expectation", kit("ssr", "ssr/expectation.jsonl", ssr_expectation, lambda c: 1e-12)
    yield "ssr, random", rules_random("diff_ssr.py", "ssr", 3000)
    for file in ("judge_texts", "votes", "combine"):
        yield "votes, " + file, kit("votes", f"prm/{file}.jsonl", tol=lambda c: 1e-12)
    yield "judge-prompt", kit("judge-prompt", "prm/prompts.jsonl.gz", prompt_sections)
    yield "votes and judge-prompt, random", rules_random("diff_judge.py", "prm", 3000)
    yield "whole and per-step rows, reference path", go_tests("./tokenize", "SeedParity")
    yield "window, reference path", go_tests(".", "WindowParity")
    yield "readers, converted dumps", readers
    yield "readers, sets of chats", chat_sets
    yield "readers, made rows", go_tests("./export", "Python", "pyarrow", "polars", "duckdb", "datasets")
    yield "targets, random batches", exports_random
    yield "recipes, random batches", recipes_random
    yield "recipes of OpenClaw-RL, random batches", openclaw_recipes
    yield "recipes of single steps and self-play, random batches", stage_recipes
    yield "sandboxes of OpenClaw-RL", sandboxes
    yield "agent loop of OpenClaw-RL", swerl_loop
    yield "prime-rl files", go_tests("./export/primerl", ".", "msgspec")
    yield "slime files", go_tests("./export/slime", ".", "torch")
    yield "trl loader", go_tests("./export/target", "TRL", "trl", "torch")
    yield "verl, skyrl, areal loaders", trainer_loaders
    yield "tutorial, trained step", trained_step
    yield "trainers, package", trainers_package
    yield "patches against git", go_tests("./reward/patch", "Git")


def main():
    if not KITS.exists():
        print("skip  the kits are not beside the checkout: only what needs none of them runs")
    only = os.environ.get("TURNPACK_ONLY", "")
    count = {"ok": 0, "DIFF": 0, "skip": 0}
    for name, run in steps():
        if only not in name:
            continue
        at = time.perf_counter()
        try:
            verdict, said = "ok", run()
        except Skip as e:
            verdict, said = "skip", str(e)
        except Exception as e:  # one step's failure never hides the next step
            verdict, said = "DIFF", f"{type(e).__name__}: {e}"
        count[verdict] += 1
        print(f"{verdict:4}  {name}: {said}  [{time.perf_counter() - at:.1f} s]", flush=True)
    print(f"{count['ok']} steps agree, {count['DIFF']} differ, {count['skip']} skipped")
    sys.exit(count["DIFF"] > 0 or not count["ok"])


main()
