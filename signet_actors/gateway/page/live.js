// One stream for all tabs of this browser: a browser opens six connections to a host, and a stream holds one of them. The
// tab that has the lock reads it, and tells the others. A tab that is hidden for a minute gives the lock away.
import { say } from "./notice.js";
import { useEffect, useRef } from "./preact.js";

const AGAIN_MS = 3_000;
const MOST_MS = 60_000;
const HIDDEN_MS = 60_000;
const POLL_MS = 5_000;
const HANDED_MS = 500;

const isVisible = () => document.visibilityState === "visible";

// `open(heard, signal)` reads the stream `key`; "" reads none. `heard` gets its events, and { type: "resync" } after a gap, and now
// and then where there is neither lock nor channel (a page that is not served from this machine and without TLS).
export function useStream(key, open, heard) {
  const latest = useRef(heard);
  latest.current = heard;
  useEffect(() => {
    if (!key) return undefined;
    const resync = { type: "resync" };
    if (!navigator.locks || !window.BroadcastChannel) {
      const poll = setInterval(() => isVisible() && latest.current(resync), POLL_MS);
      return () => clearInterval(poll);
    }
    const channel = new BroadcastChannel(`signet ${key}`);
    let missed = false;
    const hear = (event) => {
      if (isVisible()) latest.current(event);
      else missed = true; // a hidden page asks nothing; it hears that there was a gap when it is seen again
    };
    channel.onmessage = (message) => hear(message.data);
    let control = null;
    let hiding = 0;
    const read = async (signal, asked) => {
      let before = Date.now() - asked > HANDED_MS; // there was another reader, and a gap since
      let wait = AGAIN_MS;
      const tell = (event) => {
        const told = event.type !== "connected" ? event : before ? resync : null;
        before = true;
        wait = AGAIN_MS;
        if (!told || signal.aborted) return;
        channel.postMessage(told);
        hear(told);
      };
      while (!signal.aborted) {
        const refused = await open(tell, signal).then(() => 0, (error) => error.status || 0);
        if (refused && wait === AGAIN_MS) say(`New things do not appear by themselves now: the daemon refuses the stream (${refused}). It is tried again.`, { bad: true });
        if (refused) wait = Math.min(2 * wait, MOST_MS);
        await new Promise((resolve) => setTimeout(resolve, signal.aborted ? 0 : wait));
      }
    };
    const stop = () => {
      control?.abort();
      control = null;
    };
    const changed = () => {
      clearTimeout(hiding);
      if (!isVisible()) {
        hiding = setTimeout(stop, HIDDEN_MS);
        return;
      }
      if (missed) latest.current(resync);
      missed = false;
      if (!control) {
        control = new AbortController();
        const { signal } = control;
        const asked = Date.now();
        navigator.locks.request(`signet ${key}`, { signal }, () => read(signal, asked)).catch(() => {});
      }
    };
    changed();
    document.addEventListener("visibilitychange", changed);
    return () => {
      document.removeEventListener("visibilitychange", changed);
      clearTimeout(hiding);
      stop();
      channel.close();
    };
  }, [key]);
}
