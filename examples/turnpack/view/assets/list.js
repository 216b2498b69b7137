// The list of rows and its filters.

const ITEM = 54; // height of an entry, as in the style
const filter = { range: null, found: null }; // found: row → hits of the search over all rows
let listed = []; // numbers of the rows that pass the filters
let chosen = -1; // the row on show

const marks = new Map(); // row → findings in it, with their places
for (const f of HEAD.findings) {
  for (const p of f.examples) {
    const i = p.row - HEAD.from;
    if (p.row < 0) continue;
    if (!marks.has(i)) marks.set(i, []);
    marks.get(i).push({ finding: f, token: p.token, text: p.text });
  }
}

const KINDS = {
  all: ["all rows", () => true],
  findings: ["rows with findings", (r, i) => marks.has(i)],
  plus: ["positive advantage", (r) => r.adv > 0],
  minus: ["negative advantage", (r) => r.adv < 0],
  zero: ["advantage 0 or none", (r) => !r.adv],
  masked: ["rows with a mask reason", (r) => r.masked !== ""],
};

function options(select, names, all) {
  select.replaceChildren(el("option", { value: "" }, all));
  names.forEach((name, n) => select.append(el("option", { value: String(n + 1) }, plain(name))));
}

const groupNames = [...new Set(HEAD.rows.map((r) => r.group))];
let rolloutNames = [];

function fillRollouts() {
  const group = groupNames[$("f-group").value - 1];
  rolloutNames = [...new Set(HEAD.rows.filter((r) => group === undefined || r.group === group).map((r) => r.rollout))];
  options($("f-rollout"), rolloutNames, `all ${count(rolloutNames.length)} rollouts`);
}

function startList() {
  options($("f-group"), groupNames, `all ${count(groupNames.length)} groups`);
  fillRollouts();
  for (const [key, [name]] of Object.entries(KINDS)) $("f-kind").append(el("option", { value: key }, name));
  $("f-group").addEventListener("change", () => {
    fillRollouts();
    applyFilters();
  });
  for (const id of ["f-rollout", "f-kind"]) $(id).addEventListener("change", applyFilters);
  $("f-row").addEventListener("input", applyFilters);
  $("range").querySelector("button").addEventListener("click", () => {
    filter.found = null;
    setRange(null);
  });
  $("list").addEventListener("scroll", drawList);
  $("list").addEventListener("click", (e) => {
    const item = e.target.closest(".item");
    if (item) openRow(+item.dataset.row);
  });
  $("list").addEventListener("keydown", (e) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by) {
      e.preventDefault();
      step(by);
    }
  });
}

function setRange(range) {
  filter.range = range;
  applyFilters();
}

function applyFilters() {
  const text = $("f-row").value.trim().toLowerCase();
  const group = groupNames[$("f-group").value - 1], rollout = rolloutNames[$("f-rollout").value - 1];
  const kind = KINDS[$("f-kind").value][1], range = filter.range;
  listed = [];
  HEAD.rows.forEach((r, i) => {
    if (group !== undefined && r.group !== group) return;
    if (rollout !== undefined && r.rollout !== rollout) return;
    if (text && !r.id.toLowerCase().includes(text) && String(i + HEAD.from) !== text) return;
    if (!kind(r, i)) return;
    if (range) {
      const v = MEASURES[range.key].of(r);
      if (v === null || v === undefined || !inside(v, range.bin)) return;
    }
    if (filter.found && !filter.found.has(i)) return;
    listed.push(i);
  });
  const names = [range && range.label, filter.found && "rows with hits"].filter(Boolean);
  $("range").hidden = names.length === 0;
  $("range").querySelector("span").textContent = names.join(", ");
  $("count").textContent = listed.length === HEAD.rows.length ? plural(listed.length, "row") : `${count(listed.length)} of ${plural(HEAD.rows.length, "row")}`;
  $("list").firstElementChild.style.height = `${listed.length * ITEM}px`;
  $("list").scrollTop = 0;
  reveal();
  drawList();
}

function drawList() {
  const box = $("list");
  const from = Math.max(0, Math.floor(box.scrollTop / ITEM) - 4);
  const to = Math.min(listed.length, Math.ceil((box.scrollTop + box.clientHeight) / ITEM) + 4);
  const items = [];
  for (let n = from; n < to; n++) {
    const i = listed[n], r = HEAD.rows[i], name = plain(r.id);
    const bar = el("i", {});
    bar.style.width = `${r.tokens ? (100 * r.trained) / r.tokens : 0}%`;
    const item = el("div", { class: i === chosen ? "item chosen" : "item", "data-row": i, role: "option", "aria-selected": String(i === chosen), title: name },
      el("b", {}, `${i + HEAD.from} · ${name}`),
      el("small", {}, el("span", {}, `${count(r.tokens)} tok`), el("span", {}, `r ${num(r.reward)}`), r.adv === null ? "" : el("span", {}, `adv ${num(+r.adv.toPrecision(3))}`),
        r.drift === undefined ? "" : el("span", { title: `the trainer's log probabilities against those recorded: ${(100 * r.beyond).toFixed(1)} % of the trained tokens off by more than 0.001` }, `drift ${r.drift.toExponential(0)}`),
        marks.has(i) ? el("span", { class: "bad" }, `⚠ ${marks.get(i).length}`) : "", filter.found ? el("span", {}, plural(filter.found.get(i), "hit")) : ""),
      bar);
    item.style.top = `${n * ITEM}px`;
    items.push(item);
  }
  box.firstElementChild.replaceChildren(...items);
}

// reveal scrolls the list to the row on show.
function reveal() {
  const n = listed.indexOf(chosen), box = $("list");
  if (n < 0) return;
  if (n * ITEM < box.scrollTop) box.scrollTop = n * ITEM;
  else if ((n + 1) * ITEM > box.scrollTop + box.clientHeight) box.scrollTop = (n + 1) * ITEM - box.clientHeight;
}

// step opens the next or the previous row of the list.
function step(by) {
  const n = listed.indexOf(chosen);
  const next = n < 0 ? 0 : n + by;
  if (next >= 0 && next < listed.length) openRow(listed[next]);
}
