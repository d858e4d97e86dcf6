// A session as rows: each turn, and with each prompt what it was given.

const plain = (text) => text.replace(/\s+/g, " ").trim();

const HEAD_CHARS = 60;

// Turns have no number of a prompt, and what was asked is kept cut: a prompt belongs to the next user's turn that begins alike.
export function conversation(turns, searches) {
  const rows = turns.map((turn) => ({ turn, at: turn.at }));
  const asked = [...searches].sort((a, b) => (a.at < b.at ? -1 : 1));
  const loose = [];
  let from = 0;
  for (const search of asked) {
    const head = search.kind === "prompt" && search.prompt ? plain(search.prompt).slice(0, HEAD_CHARS) : "";
    const found = head ? rows.findIndex((row, index) => index >= from && row.turn.role === "user" && plain(row.turn.content).startsWith(head)) : -1;
    if (found < 0) loose.push(search);
    else {
      Object.assign(rows[found], { search, at: search.at });
      from = found + 1;
    }
  }
  for (const search of loose) {
    const before = rows.findIndex((row) => row.at && row.at > search.at);
    rows.splice(before < 0 ? rows.length : before, 0, { search, at: search.at });
  }
  let epoch = null;
  for (const row of rows) {
    const now = row.search?.contextEpoch;
    if (now === null || now === undefined) continue;
    row.compacted = epoch !== null && now > epoch;
    epoch = now;
  }
  return rows;
}

const WORD = /[\p{L}\p{N}_./-]{4,}/gu;

const rareWords = (text) => new Set((text.toLowerCase().match(WORD) || []).map((word) => word.replace(/[./-]+$/, "")));

// True if the answer has two words of the memory, or a number of it, that the prompt did not have. A guess, no more.
export function seemsUsed(memory, prompt, answer) {
  const [asked, answered] = [rareWords(prompt), rareWords(answer)];
  const shared = [...rareWords(memory)].filter((word) => answered.has(word) && !asked.has(word));
  return shared.length >= 2 || shared.some((word) => /\d/.test(word));
}
