// Changes of memories. Each of them says what was done and how to take it back.
import { api } from "./api.js";
import { attempt, offerUndo, say } from "./notice.js";
import { count, cut, projectName, tagsOf } from "./words.js";

export const REASON = "changed on the page";
export const MOST = 200;
const OWN_MS = 3_000;

const own = new Map();

function touch(id) {
  own.set(id, Date.now());
  return id;
}

// True if this page has changed the memory just now: whoever did it need not be told.
export const changedHere = (id) => Date.now() - (own.get(id) || 0) < OWN_MS;

const named = (rows) => (rows.length === 1 ? `“${cut(rows[0].content, 48)}”` : count(rows.length, "memory", "memories"));

async function modify(patches) {
  for (const { id } of patches) touch(id);
  const reply = await api("memories.modify", { reason: REASON, patches });
  const refused = reply.results.filter((one) => one.error);
  if (refused.length) say(`${count(refused.length, "memory was", "memories were")} not changed: ${refused[0].error}`, { bad: true });
  return reply;
}

// Applies `patchOf(row)` to each row, and offers to take it back with `backOf(row, result)`.
async function change(rows, told, patchOf, backOf, done) {
  if (!rows.length) return;
  await attempt(async () => {
    const reply = await modify(rows.slice(0, MOST).map((row) => ({ id: row.id, ...patchOf(row) })));
    const changed = reply.results.map((result, at) => [rows[at], result]).filter(([, result]) => result.status === "updated");
    if (changed.length) {
      offerUndo(told(changed.map(([row]) => row)), async () => {
        await modify(changed.map(([row, result]) => ({ id: row.id, ...backOf(row, result) })));
        done();
      });
    }
    done();
  });
}

export function pin(rows, done) {
  const pinned = !rows.every((row) => row.pinned);
  return change(rows, (changed) => `${pinned ? "Pinned" : "Unpinned"} ${named(changed)}.`, () => ({ pinned }), (row) => ({ pinned: Boolean(row.pinned) }), done);
}

// `tags`: what they all get beside those that they have now, or with `instead` in the place of those that the row shows.
export function tag(rows, tags, done, { instead = false } = {}) {
  return attempt(async () => {
    const now = instead ? rows : [];
    if (!instead) for (const { id } of rows.slice(0, MOST)) now.push(await api("memories.get", { id }));
    const patchOf = (row) => ({ tags: instead ? tags : [...new Set([...tagsOf(row.tags), ...tags])], if_version: row.version });
    await change(now, (changed) => `Tagged ${named(changed)}.`, patchOf, (row, result) => ({ tags: tagsOf(row.tags), if_version: result.newVersion }), done);
  });
}

// `project`: a path, or "" for none.
export function move(rows, project, done) {
  return change(rows, (changed) => `Moved ${named(changed)} to ${projectName(project)}.`, () => ({ project: project || null }), (row) => ({ project: row.project || null }), done);
}

export function retype(row, type, done) {
  return change([row], () => `It is a ${type} now.`, () => ({ type }), () => ({ type: row.type }), done);
}

const drop = (row) => api("memories.delete", { id: touch(row.id), reason: REASON, force: true });

export async function forget(rows, done) {
  if (!rows.length) return;
  await attempt(async () => {
    const forgotten = [];
    try {
      for (const row of rows.slice(0, MOST)) {
        await drop(row);
        forgotten.push(row);
      }
    } finally {
      if (forgotten.length) {
        offerUndo(`Forgotten: ${named(forgotten)}. The list under Forgotten says until when it can be recovered.`, () => recovered(forgotten, done));
        done();
      }
    }
  });
}

async function recovered(rows, done) {
  for (const row of rows) await api("memories.recover", { id: touch(row.id), reason: REASON });
  done();
  return `Recovered: ${named(rows)}.`;
}

export async function recover(rows, done) {
  if (!rows.length) return;
  const told = await attempt(() => recovered(rows, done));
  if (told) offerUndo(told, async () => {
    for (const row of rows) await drop(row);
    done();
    return "Forgotten again.";
  });
}

// Stores another text. Raises ApiError with status 409 if the memory was changed meanwhile.
export async function rewrite(memory, content, done) {
  const reply = await api("memories.patch", { id: touch(memory.id), content, reason: REASON, if_version: memory.version });
  if (reply.status === "no_changes") return;
  offerUndo(reply.redacted ? "Saved; a secret was cut out." : "Saved.", async () => {
    await api("memories.patch", { id: touch(memory.id), content: memory.content, reason: "undone", if_version: reply.newVersion });
    done();
  });
  done();
}

export function remember(content, fields, done) {
  return attempt(async () => {
    const reply = await api("memories.remember", { content, ...fields });
    touch(reply.id);
    if (reply.deduped) say("It was known already.");
    else offerUndo("Remembered.", () => drop(reply).then(() => (done(), "Forgotten again.")));
    done();
  });
}
