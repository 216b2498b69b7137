// Reading the page's data: the head, the vocabulary and the rows.

const $ = (id) => document.getElementById(id);
const HEAD = JSON.parse($("head").textContent);
const COLUMNS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f32: Float32Array };
const SPECIAL = 1, STOP = 2, UNKNOWN = 4;

// unpack inflates a block and lays typed arrays over it.
async function unpack(id) {
  const raw = Uint8Array.from(atob($(id).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const buf = await new Response(stream).arrayBuffer();
  const length = new DataView(buf).getUint32(0, true);
  const out = JSON.parse(new TextDecoder().decode(new Uint8Array(buf, 4, length)));
  let at = 4 + length;
  for (const c of out.columns) {
    at = (at + 3) & ~3;
    const type = COLUMNS[c.type];
    out[c.name] = new type(buf, at, c.len);
    at += c.len * type.BYTES_PER_ELEMENT;
  }
  return out;
}

let vocab; // ids, at, facts, bytes, and text: the token's text, null for a part of a character

async function loadVocab() {
  vocab = await unpack("vocab");
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  vocab.text = Array.from(vocab.ids, (id, n) => {
    if (vocab.facts[n] & UNKNOWN) return `⟨id ${id}⟩`;
    try {
      return strict.decode(bytesOf(n));
    } catch {
      return null;
    }
  });
}

const bytesOf = (n) => vocab.bytes.subarray(vocab.at[n], vocab.at[n + 1]);

const kept = new Map(); // the rows opened last
async function loadRow(i) {
  if (kept.has(i)) return kept.get(i);
  const row = await unpack(`row-${i}`);
  row.number = i;
  row.texts = textsOf(row.tokens);
  kept.set(i, row);
  if (kept.size > 4) kept.delete(kept.keys().next().value);
  return row;
}

// textsOf gives the text of every token. A character spread over several tokens
// belongs to the one that holds its first byte; the others have none.
function textsOf(tokens) {
  const out = new Array(tokens.length);
  for (let t = 0; t < tokens.length; t++) {
    out[t] = vocab.text[tokens[t]];
    if (out[t] !== null) continue;
    let end = t + 1;
    while (end < tokens.length && vocab.text[tokens[end]] === null) end++;
    shareOut(tokens, t, end, out);
    t = end - 1;
  }
  return out;
}

function shareOut(tokens, from, to, out) {
  const bytes = [], owner = [];
  for (let t = from; t < to; t++) {
    out[t] = "";
    for (const b of bytesOf(tokens[t])) {
      bytes.push(b);
      owner.push(t);
    }
  }
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  for (let p = 0; p < bytes.length; ) {
    const lead = bytes[p];
    let size = lead < 0x80 ? 1 : lead >> 5 === 6 ? 2 : lead >> 4 === 14 ? 3 : lead >> 3 === 30 ? 4 : 1;
    let text = "\ufffd";
    try {
      text = strict.decode(Uint8Array.from(bytes.slice(p, p + size)));
    } catch {
      size = 1;
    }
    out[owner[p]] += text;
    p += size;
  }
}

// el makes an element; text never becomes markup.
function el(tag, attrs, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k === "class") e.className = v;
    else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return e;
}

const count = (n) => n.toLocaleString("en-US");
const percent = (n, of) => (of ? ((100 * n) / of).toFixed(1) : "0.0") + " %";
function num(v) {
  if (v === null || v === undefined) return "none";
  if (Number.isNaN(v)) return "NaN";
  return Number.isInteger(v) ? String(v) : String(+v.toPrecision(6));
}
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

// plain makes hidden characters of a name visible.
const plain = (s) => parts(s).map((p) => (p === NL ? "↵" : p)).join("");
