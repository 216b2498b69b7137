"""Draws what the loop did: rewards by arm, fidelity and drift, tokens a second by stage. It needs nothing but Python.

    plot.py RESULTS... --svg FILE [--markdown FILE]
"""
import argparse
import collections
import json
import statistics as st

LAST = 5  # steps that a final reward is the mean of
COLOURS = ["#1b6ca8", "#c0392b", "#27864a", "#8e44ad", "#b9770e", "#566573", "#117a65", "#922b21", "#2e4053", "#af601a"]


def read(paths):
    arms = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in paths:
        with open(path) as f:
            for line in f:
                s = json.loads(line)
                arms[s["arm"]][s["seed"]].append(s)
    return arms


def ends(seeds):
    """Mean rewards of the first and the last steps, by seed."""
    first = [st.mean(s["reward"] for s in run[:LAST]) for run in seeds.values()]
    return first, [st.mean(s["reward"] for s in run[-LAST:]) for run in seeds.values()]


def facts(seeds):
    steps = [s for run in seeds.values() for s in run]
    trained, sampled = sum(s["trained"] for s in steps), sum(s["sampled"] for s in steps)
    weigh = lambda key: sum(s[key] * s["trained"] for s in steps) / max(1, trained)  # noqa: E731
    first, final = ends(seeds)
    seconds = lambda key: max(1e-9, sum(s[key] for s in steps))  # noqa: E731
    return {"runs": len(seeds), "first": st.mean(first), "final": st.mean(final), "low": min(final), "high": max(final), "fidelity": weigh("fidelity"), "drift": weigh("drift"), "beyond": weigh("beyond"),
            "rows": sum(s["rows"] for s in steps), "agents": sampled / seconds("agents"), "batches": sum(s["tokens"] for s in steps) / seconds("batches"), "training": trained / seconds("training")}


def smooth(values, k=3):
    return [st.mean(values[max(0, i - k + 1):i + 1]) for i in range(len(values))]


def chart(out, x, y, w, h, title, arms, names, colours):
    """Mean reward over steps: a line for the mean of the runs, a band from the lowest to the highest."""
    steps = max(len(run) for n in names for run in arms[n].values())
    px = lambda i: x + i * w / max(1, steps - 1)  # noqa: E731
    py = lambda v: y + h - max(-0.25, min(1, v)) * h  # noqa: E731
    out.append(f'<text x="{x}" y="{y - 12}" class="t">{title}</text>')
    for v in (0, 0.2, 0.4, 0.6, 0.8, 1):
        out.append(f'<line x1="{x}" x2="{x + w}" y1="{py(v):.1f}" y2="{py(v):.1f}" class="{"mark" if v in (0.2, 0.8) else "grid"}"/><text x="{x - 6}" y="{py(v) + 4:.1f}" class="n" text-anchor="end">{v:g}</text>')
    for i in range(0, steps, 10):
        out.append(f'<text x="{px(i):.1f}" y="{y + h + 16}" class="n" text-anchor="middle">{i}</text>')
    for at, n in enumerate(names):
        runs = [smooth([s["reward"] for s in run]) for run in arms[n].values()]
        length = min(map(len, runs))
        low, high, mean = ([f(r[i] for r in runs) for i in range(length)] for f in (min, max, lambda g: st.mean(list(g))))
        band = [f"{px(i):.1f},{py(v):.1f}" for i, v in enumerate(high)] + [f"{px(i):.1f},{py(v):.1f}" for i, v in reversed(list(enumerate(low)))]
        c = colours[n]
        out.append(f'<polygon points="{" ".join(band)}" fill="{c}" opacity="0.13"/><polyline points="{" ".join(f"{px(i):.1f},{py(v):.1f}" for i, v in enumerate(mean))}" fill="none" stroke="{c}" stroke-width="2"/>')
        row = y + h + 36 + 17 * at
        out.append(f'<rect x="{x}" y="{row - 9}" width="12" height="10" fill="{c}"/><text x="{x + 18}" y="{row}" class="n">{n}: {facts(arms[n])["final"]:.2f}</text>')


def bars(out, x, y, w, title, rows, unit):
    """A bar each on a scale of tens."""
    out.append(f'<text x="{x}" y="{y - 12}" class="t">{title}</text>')
    most = max(v for _, v, _ in rows) or 1
    for i, (name, v, c) in enumerate(rows):
        at = y + 20 * i
        out.append(f'<text x="{x}" y="{at + 11}" class="n">{name}</text><rect x="{x + 190}" y="{at}" width="{max(1, (w - 290) * v / most):.1f}" height="13" fill="{c}"/>'
                   f'<text x="{x + 196 + max(1, (w - 290) * v / most):.1f}" y="{at + 11}" class="n">{unit(v)}</text>')


def draw(arms):
    colours = {n: COLOURS[i % len(COLOURS)] for i, n in enumerate(arms)}
    tasks = collections.defaultdict(list)
    for n, seeds in arms.items():
        tasks[next(iter(seeds.values()))[0]["task"]].append(n)
    out, width = [], 980
    for i, (task, names) in enumerate(sorted(tasks.items())):
        title = {"lookup": "Look a value up, answer it", "subagent": "Brief a subagent, which answers"}.get(task, task)
        chart(out, 60 + 480 * i, 60, 400, 260, f"{title}: mean reward by step", arms, names, colours)
    top = 60 + 260 + 36 + 17 * max(len(names) for names in tasks.values()) + 44
    told = {n: facts(seeds) for n, seeds in arms.items()}
    bars(out, 60, top, 460, "Trained tokens that are the engine's own, in its context", [(n, f["fidelity"], colours[n]) for n, f in told.items()], lambda v: f"{v:.1%}")
    bars(out, 540, top, 440, "Trained tokens whose log probability is off by 0.001", [(n, f["beyond"], colours[n]) for n, f in told.items()], lambda v: f"{v:.1%}")
    top += 20 * len(told) + 50
    first = next(iter(told.values()))
    bars(out, 60, top, 460, f"Tokens a second by stage ({next(iter(told))})",
         [("agents and engine: sampled", first["agents"], "#1b6ca8"), ("rows and batches: written", first["batches"], "#27864a"), ("trainer: trained", first["training"], "#b9770e")], lambda v: f"{v:,.0f}")
    height = top + 90
    style = "text{font-family:sans-serif;fill:#222}.t{font-size:14px;font-weight:bold}.n{font-size:12px}.grid{stroke:#e3e3e3}.mark{stroke:#999;stroke-dasharray:4 3}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"><style>{style}</style><rect width="100%" height="100%" fill="white"/>\n' + "\n".join(out) + "\n</svg>\n"


def table(arms):
    lines = ["| arm | mean reward, first five steps | last five (lowest and highest run) | fidelity | mean drift | beyond 0.001 | rows |", "|---|---|---|---|---|---|---|"]
    for n, seeds in arms.items():
        f = facts(seeds)
        lines.append(f"| {n} | {f['first']:.2f} | {f['final']:.2f} ({f['low']:.2f} to {f['high']:.2f}) | {f['fidelity']:.1%} | {f['drift']:.1e} | {f['beyond']:.1%} | {f['rows']:,} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    flags = argparse.ArgumentParser()
    flags.add_argument("results", nargs="+")
    flags.add_argument("--svg", required=True)
    flags.add_argument("--markdown")
    given = flags.parse_args()
    arms = read(given.results)
    with open(given.svg, "w") as f:
        f.write(draw(arms))
    if given.markdown:
        with open(given.markdown, "w") as f:
            f.write(table(arms))
    print(table(arms), end="")
