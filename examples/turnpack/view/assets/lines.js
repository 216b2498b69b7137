// Laying out a row in lines of equal height, so that any place of any row can be
// drawn alone.

const NL = Symbol("line break");
const TAB = "→   ";
// Characters that would hide, reorder or end a line are shown by name.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufeff\ufff9-\ufffc\u{e0000}-\u{e0fff}]/u;
const WIDE = /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const NONE = /[\p{Mn}\p{Me}\ufe00-\ufe0f]/u;
const ASCII = /^[ -~]*$/;

// parts cuts a text at line breaks and spells what cannot be seen.
function parts(text) {
  if (ASCII.test(text)) return text === "" ? [] : [text];
  const out = [];
  let part = "";
  for (const c of text) {
    if (c === "\n") {
      if (part) out.push(part);
      out.push(NL);
      part = "";
    } else if (c === "\t") part += TAB;
    else if (HIDDEN.test(c)) {
      const code = c.codePointAt(0);
      part += code < 32 ? String.fromCharCode(0x2400 + code) : code === 127 ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
    } else part += c;
  }
  if (part) out.push(part);
  return out;
}

function width(text) {
  if (ASCII.test(text)) return text.length;
  let n = 0;
  for (const c of text) n += NONE.test(c) ? 0 : WIDE.test(c) ? 2 : 1;
  return n;
}

// layout cuts a row into lines of at most columns columns. Line i holds the
// segments first[i] to first[i+1]; a segment is a token and the text it shows.
// rule[i] is the message whose rule line i is, −1 for text.
function layout(row, columns) {
  const token = [], text = [], first = [], rule = [], lineOf = new Uint32Array(row.tokens.length);
  const shown = new Map(); // vocabulary entry → parts
  let at = 0, space = -1; // column; segment where the line may be broken
  const open = (kind) => {
    first.push(token.length);
    rule.push(kind);
    at = 0;
    space = -1;
  };
  const put = (t, s, w) => {
    token.push(t);
    text.push(s);
    at += w;
  };
  const place = (t, s) => {
    let w = width(s);
    if (/^\s/.test(s)) space = token.length;
    if (at + w > columns && at > 0) {
      const start = first[first.length - 1];
      if (space > start && space < token.length && !/^\s/.test(s)) {
        const from = space; // take the word begun earlier along
        first.push(from);
        rule.push(-1);
        at = 0;
        for (let k = from; k < token.length; k++) at += width(text[k]);
        space = -1;
      } else open(-1);
    }
    while (at + w > columns) {
      let piece = "", n = 0;
      for (const c of s) {
        const cw = width(c);
        if (n + cw > columns - at && piece) break;
        piece += c;
        n += cw;
      }
      put(t, piece, n);
      s = s.slice(piece.length);
      w = width(s);
      if (!s) return;
      open(-1);
    }
    put(t, s, w);
  };
  let message = 0;
  open(-1);
  let empty = true; // the open line is new
  for (let t = 0; t < row.tokens.length; t++) {
    if (message < row.messages.length && row.messages[message].from === t) {
      if (empty && first.length > 0 && first[first.length - 1] === token.length) {
        first.pop();
        rule.pop();
      }
      open(message++);
      open(-1);
    }
    const n = row.tokens[t];
    let list = shown.get(n);
    if (!list) {
      list = parts(row.texts[t]);
      if (vocab.text[n] !== null) shown.set(n, list);
    }
    if (list.length === 0) place(t, "·");
    for (const p of list) {
      if (p === NL) {
        put(t, "↵", 1);
        open(-1);
        empty = true;
      } else {
        place(t, p);
        empty = false;
      }
    }
  }
  if (first.length > 1 && first[first.length - 1] === token.length && rule[rule.length - 1] < 0) {
    first.pop();
    rule.pop();
  }
  const lines = first.length;
  first.push(token.length);
  for (let i = lines - 1; i >= 0; i--) for (let k = first[i]; k < first[i + 1]; k++) lineOf[token[k]] = i;
  return { token, text, first, rule, lines, lineOf };
}
