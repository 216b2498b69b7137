// The batch page: cards, distributions and findings.

const MEASURES = {
  tokens: { title: "Length", unit: "tokens per row", of: (r) => r.tokens, whole: true },
  trained: { title: "Trained share", unit: "% of a row's tokens", of: (r) => (r.tokens ? (100 * r.trained) / r.tokens : 0) },
  reward: { title: "Reward", unit: "per row", of: (r) => r.reward },
  adv: { title: "Advantage", unit: "per row", of: (r) => r.adv },
  drift: { title: "Drift", unit: "mean difference of the trainer's log probabilities from those recorded", of: (r) => (r.drift === undefined ? null : r.drift) },
  steps: { title: "Steps", unit: "agent steps per row", of: (r) => r.last - r.first + 1, whole: true },
};

// bins cuts sorted values into about 30 equal intervals, one per value where
// values are few whole numbers. The last one is closed. Where few values lie far
// above the others, one wider interval at the end holds them.
function bins(values, whole) {
  const most = values[values.length - 1], usual = quantile(values, 0.99);
  if (whole && values[0] >= 0 && most > 3 * usual + 30) {
    const out = bins(values.filter((v) => v <= usual), whole);
    const end = out[out.length - 1];
    end.n = values.filter((v) => v >= end.lo && v < end.hi).length;
    return [...out, { lo: end.hi, hi: most + 1, last: false, far: true, n: values.filter((v) => v >= end.hi).length }];
  }
  const lo = values[0];
  const hi = most;
  let n = 30, size = (hi - lo) / n;
  if (lo === hi) {
    n = 1;
    size = whole ? 1 : Math.max(Math.abs(lo), 1) * 1e-9;
  } else if (whole) {
    size = Math.max(1, Math.ceil((hi - lo + 1) / 30));
    n = Math.ceil((hi - lo + 1) / size);
  }
  const out = Array.from({ length: n }, (_, i) => ({ lo: lo + i * size, hi: i === n - 1 && !whole ? hi : lo + (i + 1) * size, last: i === n - 1 && !whole, n: 0 }));
  for (const v of values) out[Math.min(n - 1, Math.floor((v - lo) / size))].n++;
  return out;
}

// inside reports whether v lies in a bin, as bins counted it.
const inside = (v, b) => v >= b.lo && (v < b.hi || (b.last && v <= b.hi));

// short is a number of four digits; whole ones in full, dust as 0.
function short(v) {
  if (Number.isInteger(v)) return count(v);
  if (Math.abs(v) >= 1000) return count(Math.round(v));
  return Math.abs(v) < 1e-6 ? "0" : num(+v.toPrecision(4));
}

// quantile lies between two values in proportion, as numpy and pandas have it.
function quantile(sorted, q) {
  const at = q * (sorted.length - 1), low = sorted[Math.floor(at)];
  return low + (at % 1) * (sorted[Math.ceil(at)] - low);
}

function histogram(key) {
  const m = MEASURES[key];
  const values = HEAD.rows.map(m.of).filter((v) => v !== null && v !== undefined);
  const title = el("h2", {}, m.title);
  if (values.length === 0) return el("div", { class: "chart" }, title, el("p", {}, "no row has a value"));
  const sorted = Float64Array.from(values).sort();
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const all = bins(sorted, m.whole);
  const top = Math.max(...all.map((b) => b.n));
  const label = (b) => (m.whole ? (b.hi - b.lo > 1 ? `${count(b.lo)} to ${count(b.hi - 1)}` : count(b.lo)) : b.lo === b.hi || all.length === 1 ? num(b.lo) : `${short(b.lo)} to ${short(b.hi)}`);
  const bars = el("div", { class: "bars", "data-measure": key });
  for (const b of all) {
    const bar = el("i", {});
    bar.style.height = b.n ? `max(2px, ${(100 * b.n) / top}%)` : "0";
    bars.append(el("button", { type: "button", title: `${label(b)}: ${plural(b.n, "row")}`, onclick: () => setRange({ key, bin: b, label: `${m.title} ${label(b)}` }) }, bar));
  }
  const missing = HEAD.rows.length - values.length;
  return el("div", { class: "chart" }, title,
    el("p", {}, `${m.unit} · mean ${short(mean)} · median ${short(quantile(sorted, 0.5))} · p95 ${short(quantile(sorted, 0.95))}` + (missing ? ` · ${plural(missing, "row")} without` : "")),
    bars, el("div", { class: "scale" }, el("span", {}, short(sorted[0])), el("span", {}, `highest bar ${plural(top, "row")}`), el("span", {}, (all[all.length - 1].far ? "last bar to " : "") + short(sorted[sorted.length - 1]))));
}

// bars draws a bar for each [name, number].
function bars(title, note, all) {
  const grid = el("div", { class: "shares" }), top = Math.max(...all.map(([, k]) => k), 1);
  for (const [name, k] of all) {
    const bar = el("i", {});
    bar.style.width = `${(100 * k) / top}%`;
    grid.append(el("span", { title: plain(name) }, plain(name) || "(none)"), el("div", {}, bar), el("em", {}, count(k)));
  }
  return el("div", { class: "chart" }, el("h2", {}, title), el("p", {}, note), grid);
}

// most draws the most frequent ones.
function most(title, note, counts) {
  const all = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return bars(title, all.length > 12 ? `${note}, the 12 most frequent of ${all.length}` : note, all.slice(0, 12));
}

function shares(title, of) {
  const n = new Map();
  for (const r of HEAD.rows) n.set(of(r), (n.get(of(r)) || 0) + 1);
  return most(title, "rows", n);
}

// spread is a table of distributions over rollouts.
function spread(batch) {
  const table = el("table", {}, el("tr", {}, ...["", "n", "mean", "±", "min", "p10", "median", "p90", "max"].map((h) => el("th", {}, h))));
  for (const [name, key] of [["reward", "reward"], ["advantage", "advantage"], ["steps", "steps"], ["rows", "rows"], ["tokens", "tokens"], ["trained tokens", "trained"]]) {
    const d = batch[key];
    if (d && d.n) table.append(el("tr", {}, el("th", {}, name), ...[d.n, d.mean, d.std, d.min, d.p10, d.median, d.p90, d.max].map((v) => el("td", {}, short(v)))));
  }
  return el("div", { class: "chart wide" }, el("h2", {}, "Rollouts"), el("p", {}, "over the rollouts that have such a number"), table);
}

// drawReport shows what the run that made the batch said of all rollouts it read.
function drawReport() {
  const r = HEAD.report;
  if (!r) return [el("h2", {}, "The run"), el("p", {}, "No record of this build lies beside the batch: what was left out of it is not known here.")];
  const b = r.batch, out = [];
  if (b.solves) out.push(bars("Solved in groups", "groups by solved rollouts of all graded ones", b.solves.map((s) => [`${s.solved} of ${s.of}`, s.groups])));
  const why = (title, note, counts) => counts && Object.keys(counts).length && out.push(most(title, note, Object.entries(counts)));
  why("Verdicts", "rollouts", r.verdicts);
  why("How rollouts ended", "rollouts", r.status);
  why("Without rows", "rollouts, by reason", r.rollouts_without_rows);
  why("Out of the statistics", "rollouts, by reason", r.out_of_statistics);
  why("Masked rows", "rows, by reason", r.masked_rows);
  why("Messages at fault", "messages, by fault", r.message_faults);
  if (r.shaping) {
    why("Rewards shaped", "rollouts, by rule", r.shaping.rewards_changed);
    why("Groups left out", "groups, by rule", r.shaping.groups_left_out);
    why("Rollouts left out", "rollouts, by rule", r.shaping.rollouts_left_out);
  }
  if (r.judge) {
    const j = r.judge, k = j.kappa === null || j.kappa === undefined ? "" : `, κ ${short(j.kappa)}`;
    out.push(bars("Judge", `${percent(j.unanimous, j.steps)} of steps with votes unanimous${k}`, [["steps with votes", j.steps], ["unanimous", j.unanimous], ["without a score", j.not_computed], ["votes failed", j.failed], ["votes not read", j.unparsed]]));
  }
  const made = [r.recipe && `recipe ${r.recipe}`, r.estimator && `estimator ${r.estimator}`].filter(Boolean).join(", ");
  const solved = b.graded ? `, ${percent(b.resolved, b.graded)} of ${count(b.graded)} graded ones resolved` : "";
  return [el("h2", {}, "The run"), el("p", {}, plain(`${plural(r.rollouts, "rollout")} read in ${plural(r.groups, "group")}${solved}, ${percent(b.truncated, b.rollouts)} cut off${made ? "; " + made : ""}`)),
    el("div", { class: "charts" }, spread(b), ...out)];
}

function drawBatch() {
  const rows = HEAD.rows, groups = new Map(), rollouts = new Set();
  let tokens = 0, trained = 0;
  for (const r of rows) {
    tokens += r.tokens;
    trained += r.trained;
    rollouts.add(JSON.stringify([r.group, r.rollout]));
    if (!groups.has(r.group)) groups.set(r.group, new Set());
    groups.get(r.group).add(r.reward);
  }
  let equal = 0;
  for (const g of groups.values()) if (g.size === 1) equal++;
  const card = (value, name) => el("div", { class: "card" }, el("b", { title: String(value) }, typeof value === "number" ? (value < 1e6 ? count(value) : `${(value / 1e6).toFixed(2)} M`) : value), el("span", {}, name));
  $("batch").replaceChildren(
    HEAD.note ? el("p", { class: "note" }, plain(HEAD.note)) : "",
    el("div", { class: "cards" }, card(rows.length, "rows"), card(rollouts.size, "rollouts"), card(groups.size, "groups"),
      card(equal, "groups of equal rewards"), card(tokens, "tokens"), card(trained, "trained tokens"), card(percent(trained, tokens), "trained share"),
      card(HEAD.vocab, "distinct tokens")),
    el("div", { class: "charts" }, ...Object.keys(MEASURES).filter((k) => k !== "drift" || HEAD.rows.some((r) => r.drift !== undefined)).map(histogram), shares("Status", (r) => r.status), shares("Finish reason", (r) => r.finish)),
    ...drawReport(),
    ...drawFindings());
}

function drawFindings() {
  const title = el("h2", {}, "Findings");
  if (!HEAD.audited) return [title, el("p", {}, "The batch was not audited for this page.")];
  if (HEAD.findings.length === 0) return [title, el("p", {}, "The audit found nothing.")];
  return [title, ...HEAD.findings.map((f) => {
    const places = el("div", { class: "places" });
    for (const p of f.examples.slice(0, 40)) {
      if (p.row < 0) places.append(el("span", {}, p.text));
      else places.append(el("button", { type: "button", title: plain(p.text), onclick: () => openRow(p.row - HEAD.from, p.token) }, `row ${p.row}` + (p.token >= 0 ? `, token ${count(p.token)}` : "") + `: ${plain(p.text)}`));
    }
    return el("div", { class: `finding ${f.severity}` }, el("b", {}, `${f.severity}: ${f.title}`), ` (${f.rule}, ${plural(f.rows, "row")}` + (f.tokens ? `, ${plural(f.tokens, "token")})` : ")"),
      el("p", {}, `Harm: ${f.harm}`), el("p", {}, `Fix: ${f.fix}`), places);
  })];
}
