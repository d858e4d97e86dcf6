// What changed between two texts, word by word.

const MOST_CELLS = 4e6;

const words = (text) => text.match(/\s+|[^\s]+/g) || [];

// Returns how many words follow in both texts, in order, from each pair of places on; null of texts that are too long for it.
function common(a, b) {
  const width = b.length + 1;
  if (a.length * b.length > MOST_CELLS) return null;
  const cells = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const at = i * width + j;
      cells[at] = a[i] === b[j] ? cells[at + width + 1] + 1 : Math.max(cells[at + width], cells[at + 1]);
    }
  }
  return (i, j) => cells[i * width + j];
}

// Returns [kind, text] with the kinds "same", "out" and "in"; neighbours of a kind are joined.
export function diff(before, after) {
  const [a, b] = [words(before), words(after)];
  const parts = [];
  const add = (kind, text) => {
    const last = parts.at(-1);
    if (last?.[0] === kind) last[1] += text;
    else parts.push([kind, text]);
  };
  let first = 0;
  while (first < a.length && a[first] === b[first]) first += 1;
  let last = 0;
  while (last < Math.min(a.length, b.length) - first && a.at(-1 - last) === b.at(-1 - last)) last += 1;
  if (first) add("same", a.splice(0, first).join(""));
  b.splice(0, first);
  const end = a.splice(a.length - last).join("");
  b.splice(b.length - last);
  const follow = common(a, b);
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (follow && i < a.length && a[i] === b[j]) add("same", (j++, a[i++]));
    else if (i < a.length && (!follow || j === b.length || follow(i + 1, j) >= follow(i, j + 1))) add("out", a[i++]);
    else add("in", b[j++]);
  }
  if (end) add("same", end);
  return parts;
}
