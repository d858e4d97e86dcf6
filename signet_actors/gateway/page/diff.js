// What changed between two texts, word by word.

const MOST_CELLS = 4e6;

function words(text) {
  return text.match(/\s+|[^\s]+/g) || [];
}

// Returns [kind, text] with the kinds "same", "out" and "in"; neighbours of a kind are joined.
export function diff(before, after) {
  const a = words(before);
  const b = words(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = between(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return joined([["same", a.slice(0, start).join("")], ...middle, ["same", a.slice(a.length - end).join("")]]);
}

function between(a, b) {
  if (a.length * b.length > MOST_CELLS) return [["out", a.join("")], ["in", b.join("")]];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const [below, right] = [common[(i + 1) * width + j], common[i * width + j + 1]];
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(below, right);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const isSame = i < a.length && j < b.length && a[i] === b[j];
    const isOut = i < a.length && (j === b.length || common[(i + 1) * width + j] >= common[i * width + j + 1]);
    found.push(isSame ? ["same", a[i]] : isOut ? ["out", a[i]] : ["in", b[j]]);
    if (isSame || !isOut) j += 1;
    if (isSame || isOut) i += 1;
  }
  return found;
}

function joined(parts) {
  const all = [];
  for (const [kind, text] of parts) {
    if (!text) continue;
    const last = all[all.length - 1];
    if (last && last[0] === kind) last[1] += text;
    else all.push([kind, text]);
  }
  return all;
}
