// The row page: facts, tokens, outline.

const LINE = 20; // height of a line, as in the style
let row = null; // the row on show, with plan: its layout
let mode = "mask";
let pinned = -1; // token named in the address
let search = { query: "", hits: [], at: -1, tokens: new Map() };

const MODES = {
  mask: ["mask", () => true],
  logprob: ["logprob", (r) => r.logprob],
  advantage: ["advantage", (r) => r.advantage || HEAD.rows[r.number].adv !== null],
  weight: ["weight", () => true],
  source: ["source", () => true],
};

const ROLES = { system: 275, developer: 275, user: 210, assistant: 145, model: 145, tool: 40, ipython: 40, function: 40 };
const roleHue = (role) => {
  const word = role.split(/[^a-z]/)[0];
  if (word in ROLES) return ROLES[word];
  let h = 7;
  for (const c of role) h = (h * 31 + c.codePointAt(0)) % 360;
  return h;
};

// advantageAt is the advantage of token t, null where it trains nothing.
function advantageAt(t) {
  if (row.weight[t] <= 0) return null;
  return row.advantage ? row.advantage[t] : HEAD.rows[row.number].adv;
}

const SAMPLED = 1, REPAIRED = 64; // bits of the row's flags, which only rows with a trace have
const sampled = (t) => (row.flags ? (row.flags[t] & SAMPLED) !== 0 : row.step[t] >= 0 || row.weight[t] > 0);
const partOf = (t) => (row.flags[t] & 2 ? "content" : row.flags[t] & 4 ? "reasoning" : row.flags[t] & 8 ? "tool call" : "");

// nameOf names message n of the row: by its place in the rollout where that is
// known, and by who wrote it.
function nameOf(n) {
  const m = row.messages[n];
  return `message ${m.index >= 0 ? m.index : n}${m.role ? " · " + plain(m.role) : ""}`;
}

// sourceOf says where token t is from.
function sourceOf(t, size) {
  const name = nameOf(messageOf(t));
  if (!row.source) return `in ${name} (this file keeps no source)`;
  if (row.fields) return recordedAs(t, name);
  if (row.source[t] < 0) return `chat template, in ${name}`;
  const part = partOf(t), at = row.offset[t];
  return `message ${row.source[t]}` + (part ? `, ${part}` : "") + (at >= 0 && size ? `, bytes ${count(at)} to ${count(at + size)} as the row writes it` : "");
}

// recordedAs names the field and the bytes that token t is recorded in.
function recordedAs(t, name) {
  const from = row.source[t], field = row.fields[row.field[t]];
  if (field === "") return from < 0 ? `chat template, in ${name}` : `message ${from}, a marker the record leaves out`;
  const where = from < 0 ? `chat template, in ${name}` : `message ${from}`;
  if (field === "?") return `${where} (the record gives other text)`;
  const other = field.startsWith("~");
  return `${where}, ${plain(other ? field.slice(1) : field)}, bytes ${count(row.offset[t])} to ${count(row.until[t])}${other ? ", spelled otherwise there" : ""}`;
}

// largest values of the row, for the scales
function scales() {
  let adv = 0, weight = 0;
  for (let t = 0; t < row.tokens.length; t++) {
    const a = advantageAt(t);
    if (a !== null && Number.isFinite(a)) adv = Math.max(adv, Math.abs(a));
    if (Number.isFinite(row.weight[t])) weight = Math.max(weight, row.weight[t]);
  }
  row.scale = { adv: adv || 1, weight: weight || 1 };
}

const FULL = 6; // nats of surprise that colour a token fully
// tint is the colour variable and the strength 0 … 1 of token t, or a hue.
function tint(t) {
  switch (mode) {
    case "logprob": {
      if (!sampled(t) || !row.logprob) return null;
      return ["--heat", Math.min(1, -row.logprob[t] / FULL)];
    }
    case "advantage": {
      const a = advantageAt(t);
      return a ? [a > 0 ? "--plus" : "--minus", 0.15 + 0.85 * Math.min(1, Math.abs(a) / row.scale.adv)] : null;
    }
    case "weight":
      return row.weight[t] > 0 ? ["--weight", 0.1 + 0.9 * (row.weight[t] / row.scale.weight)] : null;
    case "source":
      if (row.source && row.source[t] < 0) return null;
      return [roleHue(row.messages[messageOf(t)].role), row.weight[t] > 0 ? 1 : 0.45];
  }
  return row.weight[t] > 0 ? ["--trained", 0.45] : null;
}

function colour(c) {
  if (!c) return "";
  if (typeof c[0] === "number") return `hsl(${c[0]} 70% 50% / ${(0.32 * c[1]).toFixed(3)})`;
  return `rgb(var(${c[0]}), ${(0.6 * c[1]).toFixed(3)})`;
}

function messageOf(t) {
  let lo = 0, hi = row.messages.length;
  while (hi - lo > 1) {
    const mid = (lo + hi) >> 1;
    if (row.messages[mid].from <= t) lo = mid;
    else hi = mid;
  }
  return lo;
}

const messageEnd = (m) => (m + 1 < row.messages.length ? row.messages[m + 1].from : row.tokens.length);

let asked = 0; // the last row asked for wins
async function openRow(i, token = -1) {
  if (!(i >= 0 && i < HEAD.rows.length)) return;
  const mine = ++asked;
  show("row");
  chosen = i;
  reveal();
  drawList();
  const next = await loadRow(i);
  if (mine !== asked) return;
  row = next;
  row.marked = new Map();
  for (const m of marks.get(i) || []) if (m.token >= 0) row.marked.set(m.token, `${m.finding.rule}: ${m.text}`);
  scales();
  if (!MODES[mode][1](row)) mode = "mask";
  pinned = token;
  drawFacts();
  drawModes();
  drawOutline();
  relayout();
  find(search.query);
  if (token >= 0 && token < row.tokens.length) goTo(token);
  else $("text").scrollTop = 0;
  drawLines();
  remember();
}

function drawFacts() {
  const r = HEAD.rows[row.number];
  const facts = [["group", plain(r.group)], ["rollout", plain(r.rollout)], ["tokens", count(r.tokens)], ["trained", `${count(r.trained)} (${percent(r.trained, r.tokens)})`],
    ["prompt", count(row.prompt)], ["steps", r.first === r.last ? `${r.first}` : `${r.first} to ${r.last}`], ["reward", num(r.reward)], ["outcome", num(r.outcome)],
    ["step reward", num(r.step)], ["advantage", num(r.adv)], ["status", r.status + (r.finish ? ` (${plain(r.finish)})` : "")], ["temperature", num(row.temperature)],
    ["row of rollout", `${row.index}${row.last ? ", the last" : ""}`]];
  if (r.masked) facts.push(["masked", plain(r.masked)]);
  const out = [el("h2", {}, `${row.number + HEAD.from} · ${plain(r.id)}`), el("dl", {}, ...facts.map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v))))];
  if (row.metadata !== undefined) out.push(el("details", {}, el("summary", {}, "metadata"), el("pre", {}, plain2(JSON.stringify(row.metadata, null, 2)))));
  for (const m of (marks.get(row.number) || []).slice(0, 50)) {
    out.push(el("div", { class: `finding ${m.finding.severity}` }, el("b", {}, m.finding.title), ` ${plain(m.text)} `,
      m.token >= 0 ? el("button", { type: "button", onclick: () => openRow(row.number, m.token) }, `token ${count(m.token)}`) : ""));
  }
  $("facts").replaceChildren(...out);
}

// plain2 keeps line breaks.
const plain2 = (s) => s.split("\n").map(plain).join("\n");

function drawModes() {
  $("modes").replaceChildren(...Object.entries(MODES).map(([key, [name, has]]) => {
    const b = el("button", { type: "button", "aria-pressed": String(key === mode), "data-mode": key, onclick: () => setMode(key) }, name);
    b.disabled = !has(row);
    if (b.disabled) b.title = "the batch does not hold it";
    return b;
  }));
  const sample = (text, ...c) => {
    const s = el("span", {}, text);
    s.style.background = colour(c);
    return s;
  };
  const legend = {
    mask: () => [sample("trained", "--trained", 0.45), "context"],
    logprob: () => [sample("0", "--heat", 0), sample("−2", "--heat", 2 / FULL), sample("−4", "--heat", 4 / FULL), sample("−6 and less", "--heat", 1)],
    advantage: () => [sample(num(-row.scale.adv), "--minus", 1), sample("0", "--minus", 0), sample(num(row.scale.adv), "--plus", 1)],
    weight: () => [sample("0", "--weight", 0), sample(num(row.scale.weight), "--weight", 1)],
    source: () => [...new Set(row.messages.map((m) => m.role))].slice(0, 6).map((role) => sample(plain(role) || "text", roleHue(role), 1)).concat(row.source ? ["chat template"] : []),
  }[mode]();
  $("legend").replaceChildren(...legend);
}

function setMode(key) {
  mode = key;
  drawModes();
  drawLines();
  drawMap();
  remember();
}

function drawOutline() {
  $("outline").replaceChildren(...row.messages.map((m, n) => {
    const size = messageEnd(n) - m.from;
    let text = "";
    for (let t = m.from; t < messageEnd(n) && t < m.from + 40 && text.length < 70; t++) if (!(vocab.facts[row.tokens[t]] & SPECIAL)) text += row.texts[t];
    text = text.trim();
    if (text.startsWith(m.role)) text = text.slice(m.role.length).trim();
    return el("button", { type: "button", class: m.trained ? "trains" : "", title: `${nameOf(n)}, token ${count(m.from)}`, onclick: () => jump(m.from) },
      el("b", {}, el("span", {}, `${m.index >= 0 ? m.index : n} ${plain(m.role) || "text"}`), el("em", {}, m.trained ? `${count(m.trained)} of ${count(size)}` : count(size))),
      el("small", {}, plain(text) || "(empty)"));
  }));
}

// relayout cuts the row anew for the width of the box.
function relayout() {
  const probe = el("span", { class: "ln" }, "m".repeat(100));
  probe.style.right = "auto";
  $("lines").append(probe);
  const char = probe.getBoundingClientRect().width / 100;
  probe.remove();
  row.plan = layout(row, Math.max(20, Math.floor($("lines").clientWidth / char) - 1));
  $("lines").style.height = `${row.plan.lines * LINE}px`;
  drawMap();
}

function drawLines() {
  if (!row || !row.plan) return;
  const box = $("text"), plan = row.plan;
  const from = Math.max(0, Math.floor(box.scrollTop / LINE) - 15);
  const to = Math.min(plan.lines, Math.ceil((box.scrollTop + box.clientHeight) / LINE) + 15);
  const out = [];
  const current = search.at >= 0 ? search.hits[search.at] : null;
  for (let i = from; i < to; i++) {
    let line;
    if (plan.rule[i] >= 0) {
      const m = row.messages[plan.rule[i]];
      line = el("div", { class: "ln rule" }, `${nameOf(plan.rule[i])} · token ${count(m.from)}${m.step >= 0 ? ` · step ${m.step}` : ""}${m.trained ? ` · ${count(m.trained)} trained` : ""}`);
    } else {
      line = el("div", { class: "ln" });
      for (let k = plan.first[i]; k < plan.first[i + 1]; k++) line.append(drawToken(plan.token[k], plan.text[k], current));
    }
    line.style.top = `${i * LINE}px`;
    out.push(line);
  }
  $("lines").replaceChildren(...out);
  const top = Math.max(0, Math.floor((box.scrollTop + 2) / LINE));
  let t = row.plan.token[row.plan.first[Math.min(top, row.plan.lines - 1)]];
  if (t === undefined) t = 0;
  const now = row.tokens.length ? messageOf(t) : -1;
  const old = $("outline").querySelector(".chosen");
  const next = $("outline").children[now];
  if (old !== next) {
    if (old) old.classList.remove("chosen");
    if (next) {
      next.classList.add("chosen");
      next.scrollIntoView({ block: "nearest" });
    }
  }
  drawFrame();
}

function drawToken(t, text, current) {
  const fact = vocab.facts[row.tokens[t]];
  let c = "tk";
  if (row.weight[t] <= 0) c += " out";
  if (fact & SPECIAL) c += " sp";
  if (row.texts[t] === "") c += " part";
  if (row.marked.has(t)) c += " mark";
  if (t === pinned) c += " at";
  if (search.tokens.has(t)) c += current && t >= current[0] && t <= current[1] ? " now" : " hit";
  const e = el("span", { class: c, "data-t": t });
  if (text === "↵") e.append(el("span", { class: "nl" }, text));
  else e.append(text);
  e.style.background = colour(tint(t));
  return e;
}

// drawMap paints the whole row, one stripe per line, beside the scroll bar.
const picture = document.createElement("canvas");
function drawMap() {
  const plan = row.plan, h = Math.max(1, $("map").clientHeight), style = getComputedStyle(document.documentElement);
  for (const c of [picture, $("map")]) {
    c.width = 16;
    c.height = h;
  }
  const g = picture.getContext("2d");
  for (let y = 0; y < h; y++) {
    const from = Math.floor((y * plan.lines) / h), to = Math.max(from + 1, Math.floor(((y + 1) * plan.lines) / h));
    let best = null, mark = false;
    for (let i = from; i < to && i < plan.lines; i++) {
      for (let k = plan.first[i]; k < plan.first[i + 1]; k++) {
        const c = tint(plan.token[k]);
        if (c && (!best || c[1] > best[1])) best = c;
        mark = mark || row.marked.has(plan.token[k]) || search.tokens.has(plan.token[k]);
      }
    }
    if (best && best[1] > 0) {
      g.fillStyle = typeof best[0] === "number" ? `hsla(${best[0]}, 70%, 50%, ${0.3 + 0.5 * best[1]})` : `rgba(${style.getPropertyValue(best[0])}, ${Math.min(1, 0.25 + 0.75 * best[1])})`;
      g.fillRect(0, y, 16, 1);
    }
    if (mark) {
      g.fillStyle = style.getPropertyValue("--now");
      g.fillRect(9, y, 7, 2);
    }
  }
  drawFrame();
}

// drawFrame shows on the map which part is on the screen.
function drawFrame() {
  const map = $("map"), box = $("text");
  const g = map.getContext("2d"), k = map.height / Math.max(1, box.scrollHeight);
  g.clearRect(0, 0, 16, map.height);
  g.drawImage(picture, 0, 0);
  g.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
  g.strokeRect(0.5, box.scrollTop * k + 0.5, 15, Math.max(4, box.clientHeight * k) - 1);
}

// goTo brings token t to the upper third.
function goTo(t) {
  const box = $("text");
  box.scrollTop = Math.max(0, row.plan.lineOf[t] * LINE - box.clientHeight / 3);
}

// nextMessage brings the message after or before the one at the top there.
function nextMessage(by) {
  if (tab !== "row" || !row || !row.messages.length) return;
  const chosen = $("outline").querySelector(".chosen");
  const n = (chosen ? [...$("outline").children].indexOf(chosen) : 0) + by;
  if (n >= 0 && n < row.messages.length) jump(row.messages[n].from);
}

// jump brings the message that begins at token t to the top.
function jump(t) {
  $("text").scrollTop = Math.max(0, (row.plan.lineOf[t] - 1) * LINE);
}

// spans finds the query in the texts of a row: first and last token of each hit.
function spans(texts, query) {
  const at = new Uint32Array(texts.length + 1);
  for (let t = 0; t < texts.length; t++) at[t + 1] = at[t] + texts[t].length;
  let all = texts.join(""), want = query;
  const low = all.toLowerCase();
  if (low.length === all.length) {
    all = low; // case counts only where folding it would move the characters
    want = query.toLowerCase();
  }
  const out = [];
  let t = 0;
  for (let p = all.indexOf(want); p >= 0; p = all.indexOf(want, p + want.length)) {
    while (at[t + 1] <= p) t++;
    let last = t;
    while (at[last + 1] < p + want.length) last++;
    out.push([t, last]);
  }
  return out;
}

function find(query) {
  search = { query, hits: query && row ? spans(row.texts, query) : [], at: -1, tokens: new Map() };
  search.hits.forEach(([a, b], n) => {
    for (let t = a; t <= b; t++) search.tokens.set(t, n);
  });
  $("hits").textContent = query ? plural(search.hits.length, "hit") : "";
  if (row) {
    drawMap();
    drawLines();
  }
}

function nextHit(by) {
  const n = search.hits.length;
  if (!n) return;
  search.at = search.at < 0 ? (by > 0 ? 0 : n - 1) : (search.at + by + n) % n;
  $("hits").textContent = `${count(search.at + 1)} of ${count(n)}`;
  goTo(search.hits[search.at][0]);
  drawLines();
}

// findEverywhere counts the hits of every row and lists the rows that have any.
let hunting = 0;
async function findEverywhere(query) {
  const mine = ++hunting;
  if (!query) return;
  const found = new Map();
  for (let i = 0; i < HEAD.rows.length; i++) {
    const data = kept.get(i) || (await unpack(`row-${i}`));
    if (mine !== hunting) return;
    const n = spans(data.texts || textsOf(data.tokens), query).length;
    if (n) found.set(i, n);
    if (i % 25 === 0) $("status").textContent = `searching, ${count(i)} of ${plural(HEAD.rows.length, "row")}`;
  }
  $("status").textContent = `“${query}” stands in ${plural(found.size, "row")}`;
  filter.found = found;
  applyFilters();
  if (listed.length && !found.has(chosen)) openRow(listed[0]);
}

function drawTip(t, x, y) {
  const n = row.tokens[t], fact = vocab.facts[n], bytes = bytesOf(n);
  const hex = Array.from(bytes.subarray(0, 48), (b) => b.toString(16).padStart(2, "0")).join(" ") + (bytes.length > 48 ? " …" : "");
  const names = [fact & SPECIAL && "special", fact & STOP && "stop", fact & UNKNOWN && "not in the vocabulary", sampled(t) && "sampled", row.flags && row.flags[t] & REPAIRED && "spelling repaired"].filter(Boolean);
  const adv = advantageAt(t);
  const facts = [["token", count(t)], ["id", String(vocab.ids[n])], ["bytes", `${hex} (${bytes.length})`], ["source", sourceOf(t, bytes.length)],
    ["step", row.step[t] >= 0 ? String(row.step[t]) : "none"], ["weight", num(row.weight[t])],
    ["logprob", row.logprob && sampled(t) ? `${num(row.logprob[t])} (p ${num(Math.exp(row.logprob[t]))})` : "none"], ["advantage", adv === null ? "none" : num(adv)]];
  if (row.version && row.version[t] >= 0) facts.push(["version", String(row.version[t])]);
  facts.push(["flags", names.join(", ") || "none"]);
  const tip = $("tip");
  tip.replaceChildren(el("code", {}, plain(row.texts[t]) || "(part of the character before)"), el("table", {}, ...facts.map(([k, v]) => el("tr", {}, el("th", {}, k), el("td", {}, v)))),
    row.marked.has(t) ? el("div", { class: "bad" }, plain(row.marked.get(t))) : "");
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${Math.max(4, y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18)}px`;
}
