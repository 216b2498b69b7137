"""Writes reference.jsonl: random logs and what the parsers of swebench 5.0.2
read out of them. Usage, in an environment where that wheel is unpacked or
installed:  python reference.py [SEED] > reference.jsonl

Each line is {parser, instance_id, version, log, tests: [[id, status]...]}, or
error instead of tests where the reference raises. 
"""
import contextlib
import io
import json
import random
import sys
from types import SimpleNamespace

from standin import StandIn

sys.meta_path.append(StandIn())
from swebench.harness.log_parsers import PARSER_REGISTRY  # noqa: E402

COMMON = ["\n", "\n", "\n", " ", "  ", "\t", "    ", "test_a", "b[x]", "[/a/b]", "x.py::t", "\u00a0", "\u2003", "\x1c",
          "é", "x", "1", "12", "(", "(5ms)", "(5 ms)", "(0.1 s)", "(1.5s)", ")", ".", ":", "...", ">", "-", " - ", "'"]
PYTEST = ["PASSED", "FAILED", "SKIPPED", "XPASS", "PASSED ", "FAILED ", "ERROR: ", "SKIPPED [3] ", "[100%]", "\x1b[31m",
          "[31m", "\x1b[0m", " PASSED ", " PASSED", "a FAILED", "[", "]", "[//h/x]", "[/x/*/y]", "MouseButton.LEFT",
          "\nPASSED t::a", "\nFAILED t::b - x", "\nXFAIL t::c", "\nERROR t::d", "\nt::e XFAIL\n"]
DJANGO = [" ... ok", " ... OK", " ...  OK", " ... skipped 'x'", " ... FAIL", " ... ERROR", "FAIL: test_x (a)",
          "ERROR: test_y (b)", "\nok", "ok\n", " ... ", "--version is equivalent to version",
          "Applying sites.0002_alter_domain_unique...test_no_migrations",
          " ... Testing against Django installed in /x silenced).\nok\n", " ... Testing against Django installed in ",
          "/y silenced).\nok", "...\n", "\n...\nTesting against Django installed in ",
          " ... Internal Server Error: /a/b/\nok\n", " ... Internal Server Error: /", "/\nok\n",
          " ... System check identified no issues (0 silenced)\nok\n", "test_m (a.B)"]
SYMPY = ["____ ", "a/b.py:test_q", ".py:", " _____\n", "\ntest_w ok", "\ntest_w F", "\ntest_v E", " ok", " F", "test_q", " f", "___"]
JS = ["✓", "✔", "✕", "✖", "✗", "○", "×", "↓", "[skipped]", " 5", "5 ms", " 3s", " 7m", "\n✓ a", "\n  ✓ b (5ms)",
      "\n  ✕ c (5ms)\n", "\n1) z", "\n  1) y\n", "  2) q\n     w:", "\n  Suite\n", "\n    Inner\n", "\n3 passing",
      " xvfb-run ", "TOTAL", "ERROR", "in", " ./node_modules/.bin/jest ", "Test Suites", "  ● ", "running 3 test files",
      "5 passing", "Starting browser Chrome", "AssertionError: #x\n\n", "\nPASS a.js (1.2 s)", "\nFAIL b.js (5ms)",
      "\nPASS c (1s) d", "\nFAIL\n", "\nPASS ", "ok 1 a", "not ok 2 b", "\nok 3 c", "\n[PASSED] q", "\n[FAILED] w z"]
KARMA = ["\n", "\n", " ", "  ", "   ", "✔ a", "✖ b", "✔b", "s1", "\n  s3\n", "\n    ✔ z\n", "\n    s4", "\n  ✖ w"]
BROWSER = ["Chrome 11.2 (Linux x86_64) a FAILED\n", "Chrome 1.1 (Linux 3.4) b FAILED\n", "Chrome Headless 11 (Linux x86_64) z FAILED\n",
           "Chrome Headless ", "Chrome ", "HeadlessChrome 1.2 (Linux 1.2) n FAILED\n", "2KPhantomJS 2.1 (Linux 0.0) g FAILED\n",
           "2KPhantomJS 2.1 (Linux x86_64) g FAILED\n", "FAILED\n", " FAILED", "\x1b[31m", "\x1b[1A", "\ncase a/b: mismatch",
           "\n  1) x Error:", "  3) t\n y SomeError", "\n  2) u\n", "Error", "Error:"]
P5 = ["{\n", "[\n", "}\n", "]\n", "{a}", "[b]", "<div>", "</div>", "<p>", "</p>", "<", "/", "div>", "</", "\n  1) s\n    t:",
      "\n 2) q:", "\n3) z:", "\n  4) a\n    b\n      c:", "\n  5) a\n  b:", "\x1b[31m"]
JSON = ["./node_modules/.bin/mocha --reporter json", "./node_modules/.bin/mocha tests/run.js --reporter json",
        '{"failures": [{"fullTitle": "x"}], "passes": [{"fullTitle": "y"}]}', '"passes": [', '"failures": [',
        '"fullTitle": "a b",\n', '"fullTitle": "d", "e",\n', "]", "],", "{", "}"]
NEXT = ["Running: a (1 of 2)\n\n\n  Suite\n", "Running: q)\n\n\n  S2\n", "\n    1) fails\n", "\n    ✓ works (5ms)", "\n    ✓ w2 ("]
QUARTO = ["[smoke] > a ...", "[unit] b ...", "32mok", "31mFAILED", "test result:", "passed", "34mINFO", "/tmp/abc/", "/tmp/x1.qmd",
          "ERRORS", "\n[smoke] c ... \x1b[32mok\n", "\n[unit] d ... 31mFAILED", "\n[smoke] /tmp/q7/ e ... 32mok\n"]
COMPILED = ["--- PASS: TestA (0.1s)", "\n--- FAIL: T/b (c) (2s)\n", "\n    --- SKIP: Q (0)\n", "\ntest a::b ... ok\n",
            "\ntest c ... FAILED\n", "\ntest d  ...  ignored", "-Dtest=A#b", "BUILD SUCCESS", "BUILD FAILURE", "\n[INFO] BUILD SUCCESS\n",
            "\n+ mvn test -Dtest=C\n", "\n[junit] [PASS] t1\n", "\n [junit]  [FAIL]  t2\n", "[junit] [ERR] t3", "A > b PASSED",
            "\nA > b FAILED\n", "\nA > b\n", "\nPASSED\n", "\nFAILED\n", "\n> Task PASSED", "\n[ok]: a b (5 ms)",
            "\n[err]: c in tests/x.tcl", "[skip]: d", "[ignore]: e", "\nPASS: x", "\nFAIL: y", "\npass  a.py", "\nFAIL  b.py", "\nskip c",
            "\n[       OK ] S.N (3 ms)", "\n[  FAILED  ] S.M (1 ms)"]
SCRIPT = ["\nSuite (A\\B)\n", " ✔ a", " ✘ b", " ↩ c", "\n ✔ d e", "\nQ#t. = 0.1 s = .", "\nQ#u. 1 = F", "\na ....", "\nb ..F",
          "\ntest: x: .", "\ny: E", "z: F: .", "O\n", ": Ex", "test: ", "\nthing - passed", "q - failed x", " - passed - failed"]
XML = ['<doctest binary="x">', "</doctest>", '<TestCase name="a">', "</TestCase>", '<SubCase name="b">', "</SubCase>",
       '<Expression success="true"/>', '<Expression success="false"></Expression>',
       '<doctest><TestCase name="q"><SubCase name="w"><Expression success="true"/></SubCase></TestCase></doctest>']

POOLS = {}
for pool, names in (
    (PYTEST, "pytest astroid flask marshmallow pvlib pyvista sqlfluff xarray pytest_options pydicom requests pylint pytest_v2 astropy scikit sphinx seaborn matplotlib"),
    (DJANGO, "django"), (SYMPY, "sympy"),
    (JS, "calypso highlightjs lighthouse next marked carbon react_pdf jest jest_json vitest tap immutable_js grommet"),
    (KARMA, "karma"), (BROWSER, "bpmn_js chart_js openlayers eslint"), (P5, "p5js"), (JSON, "prismjs"), (QUARTO, "quarto_cli"),
    (COMPILED, "gotest cargo maven ant gradle_custom redis jq micropython_test googletest"),
    (SCRIPT, "phpunit minitest cucumber ruby_unit rspec_transformed_json jekyll"), (XML, "doctest"),
):
    for name in names.split():
        POOLS["parse_log_" + name] = pool
assert set(POOLS) == set(PARSER_REGISTRY)

INSTANCES = {"parse_log_jekyll": ["jekyll__jekyll-9141", "jekyll__jekyll-8761", "a"], "parse_log_immutable_js": ["x-2006", "x-2005", "q"]}
VERSIONS = {"parse_log_next": ["1.27", "1.2"], "parse_log_lighthouse": ["9.5", "2.1", "5.0", "x"]}
OPENINGS = {"parse_log_karma": "Starting browser\n", "parse_log_calypso": "+ ./node_modules/.bin/jest "}


def one(rng, parser):
    version = rng.choice(VERSIONS.get(parser, ["1"]))
    pool = {"1.27": NEXT, "2.1": JSON}.get(version, POOLS[parser])
    log = OPENINGS.get(parser, "") + "".join(rng.choice(pool if rng.random() < 0.65 else COMMON) for _ in range(rng.randint(3, 18)))
    case = {"parser": parser, "instance_id": rng.choice(INSTANCES.get(parser, ["a-1"])), "version": version, "log": log}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            read = PARSER_REGISTRY[parser](log, SimpleNamespace(instance_id=case["instance_id"], version=version))
        case["tests"] = list(read.items())
    except Exception as e:
        case["error"] = type(e).__name__
    return case


def main():
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    for parser in sorted(POOLS):
        kept = empty = errors = 0
        while kept < 10:
            case = one(rng, parser)
            if case.get("tests") == []:
                empty += 1
                if empty > 1:
                    continue
            if "error" in case:
                errors += 1
                if errors > 2:
                    continue
            kept += 1
            print(json.dumps(case, ensure_ascii=False))


main()
