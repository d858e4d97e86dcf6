// The keyboard. Each component adds a table; the newest table that knows a key gets it, that of the frame is asked last.
import { useLayoutEffect, useRef } from "./preact.js";
import { setting } from "./settings-store.js";

const tables = [];

// `table`: key -> [what it does, function]. Names: "j", "X" (with Shift), "Enter", "Escape", "Ctrl+Enter".
// `frame`: of the frame around all screens.
export function useKeys(table, { frame = false } = {}) {
  const kept = useRef({}).current;
  kept.table = table;
  useLayoutEffect(() => {
    if (frame) tables.unshift(kept);
    else tables.push(kept);
    return () => tables.splice(tables.indexOf(kept), 1);
  }, []);
}

// Returns [key, what it does] of all that can be pressed now.
export function knownKeys() {
  const known = new Map();
  for (const { table } of [...tables].reverse()) {
    for (const [key, [text]] of Object.entries(table)) if (!known.has(key) && text) known.set(key, text);
  }
  return [...known];
}

let prefix = "";

function pressed(event) {
  const { key, target } = event;
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const isCtrl = event.ctrlKey || event.metaKey;
  const isSingle = key.length === 1 && !isCtrl;
  const typing = target.closest?.("input:not([type=checkbox]), textarea, select");
  if (!isCtrl && key !== "Escape" && (typing || document.querySelector("dialog[open]"))) return;
  if (key === "Enter" && target.closest?.("a, button, summary")) return;
  if (isSingle && setting("keys") === "off" && key !== "?") return;
  const name = `${isCtrl ? "Ctrl+" : isSingle ? prefix : ""}${isCtrl && key.length === 1 ? key.toUpperCase() : key}`;
  prefix = isSingle && key === "g" ? "g " : "";
  const found = [...tables].reverse().find(({ table }) => table[name]);
  if (!found || prefix) return;
  event.preventDefault();
  found.table[name][1](event);
}

document.addEventListener("keydown", pressed);
