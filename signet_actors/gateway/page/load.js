// Reading: what a screen shows, kept while it is read anew, and never asked for while the page is hidden.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "./preact.js";

const SLOW_MS = 300;

// `load(signal)` is called when `key` changes and after `reload()`. An older request is aborted. While a new one is under
// way, and if it fails, the former `data` stays; `at` is when it was read. `everyMs`: again and again while visible.
export function useLoad(key, load, { everyMs = 0, delayMs = 0 } = {}) {
  const [state, setState] = useState({ data: null, error: null, at: 0, key: null, slow: false });
  const running = useRef(null);
  const latest = useRef(load);
  latest.current = load;

  const run = useCallback(() => {
    running.current?.abort();
    const control = new AbortController();
    running.current = control;
    const slow = setTimeout(() => setState((old) => ({ ...old, slow: true })), SLOW_MS);
    const settle = (change) => control.signal.aborted || setState((old) => ({ ...old, ...change, key, slow: false }));
    return latest.current(control.signal)
      .then((data) => settle({ data, error: null, at: Date.now() }), (error) => settle({ error }))
      .finally(() => clearTimeout(slow));
  }, [key]);

  useLayoutEffect(() => { // asked before the first picture is drawn
    const timer = delayMs ? setTimeout(run, delayMs) : void run();
    return () => {
      clearTimeout(timer);
      running.current?.abort();
    };
  }, [key]);

  useEffect(() => {
    if (!everyMs) return undefined;
    const tick = () => document.visibilityState === "visible" && run();
    const timer = setInterval(tick, everyMs);
    document.addEventListener("visibilitychange", tick);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    };
  }, [key, everyMs]);

  return { ...state, isCurrent: state.key === key, reload: run };
}
