import { spawn } from "node:child_process"

const HOOKS = {}
const ASK_MS = 1000 // how long the program may take to tell about a session
const WAIT_MS = 4000 // how long a request to the model waits for memories
const TRANSCRIPT_CHARS = 500_000 // the end of a longer conversation is sent; the daemon keeps what it has

// Run the hook, and return the JSON object that it prints; {} if it prints none.
function run(name, event) {
  return new Promise((resolve) => {
    let said = ""
    const [hook_event_name, hook] = Object.entries(HOOKS).find(([, handler]) => handler.args[handler.args.indexOf("-H") - 1] === name)
    const child = spawn(hook.command, hook.args, { stdio: ["pipe", "pipe", "ignore"] })
    const end = () => {
      clearTimeout(timer)
      child.kill("SIGKILL")
      try {
        resolve(JSON.parse(said))
      } catch {
        resolve({})
      }
    }
    const timer = setTimeout(end, hook.timeout * 1000)
    child.on("error", end)
    child.on("close", end)
    child.stdin.on("error", () => {})
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (part) => (said += part))
    child.stdin.end(JSON.stringify({ ...event, hook_event_name }))
  })
}

// Return what the promise brings, and undefined if it fails or takes longer.
function limited(promise, ms) {
  let timer
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)))
  return Promise.race([Promise.resolve(promise).catch(() => undefined), late]).finally(() => clearTimeout(timer))
}

// The conversation in the form of `opencode export`, from {role, text, answers, created} of each message.
function exported(id, messages) {
  const kept = []
  let room = TRANSCRIPT_CHARS
  for (const { role, text, answers = [], created } of [...messages].reverse()) {
    const parts = [...(text ? [{ type: "text", text }] : []), ...answers]
    if (!parts.length) continue
    room -= JSON.stringify(parts).length + 100
    if (room < 0) break
    kept.unshift({ info: { role, time: { created } }, parts })
  }
  return kept.length ? JSON.stringify({ info: { id }, messages: kept }) : undefined
}

// Whether the daemon itself had the session, which asked OpenCode for its model.
function isOwn({ title, directory }) {
  return title === "signet" && /[\\/]signet-cli-[a-z0-9_]{8}$/.test(directory ?? "")
}

// The sessions of one program. `host` tells about them: about(id), messages(id), warn(text).
class Sessions {
  known = new Map()

  constructor(host, directory) {
    this.host = host
    this.directory = directory
  }

  // Do the step after those that the session waits for already. A session of a subagent, or of the daemon, is left alone.
  after(id, step) {
    if (!id) return Promise.resolve()
    const session = this.known.get(id) ?? { texts: [], queue: Promise.resolve() }
    this.known.set(id, session)
    session.queue = session.queue
      .then(async () => {
        session.about ??= (await limited(this.host.about(id), ASK_MS)) ?? {}
        if (!session.about.parentID && !isOwn(session.about)) await step(session)
      })
      .catch(() => {})
    return session.queue
  }

  // Run a hook of the session, and return the text that comes back for a model, in a list.
  async ask(id, session, name, event = {}) {
    const cwd = session.about.directory ?? this.directory
    const answer = await run(name, { session_id: id, cwd, ...event })
    const text = answer.hookSpecificOutput?.additionalContext
    if (typeof answer.systemMessage === "string") await limited(this.host.warn(answer.systemMessage), ASK_MS)
    return typeof text === "string" && text ? [text] : []
  }

  // Run a hook of the session, and keep the text that comes back for its model.
  async report(id, session, name, event = {}) {
    session.texts.push(...(await this.ask(id, session, name, event)))
  }

  prompt(id, text) {
    return this.after(id, async (session) => {
      if (!session.started) {
        session.started = true
        // What an earlier process added to the system prompt is gone, as after a compaction.
        const source = session.about.isOld ? "compact" : "startup"
        await this.report(id, session, "session-start", { source })
      }
      if (text.trim()) await this.report(id, session, "user-prompt-submit", { prompt: text })
    })
  }

  // Return what the model of the session is to know, all of it at each request: nothing comes twice from the daemon.
  async texts(id) {
    const session = this.known.get(id)
    if (!session) return []
    await limited(session.queue, WAIT_MS)
    return session.texts
  }

  // Return what the summary of the compaction is to keep, in a list.
  async compacting(id) {
    let texts = []
    const asked = this.after(id, async (session) => (texts = await this.ask(id, session, "pre-compaction")))
    await limited(asked, WAIT_MS)
    return texts
  }

  compacted(id, summary) {
    return this.after(id, async (session) => {
      session.texts = []
      session.started = true
      await this.report(id, session, "compaction-complete", { compact_summary: await summary() })
      await this.report(id, session, "session-start", { source: "compact" })
    })
  }

  idle(id) {
    return this.after(id, async (session) => {
      const transcript = exported(id, (await limited(this.host.messages(id), ASK_MS)) ?? [])
      if (transcript) await this.report(id, session, "checkpoint", { transcript })
    })
  }

  deleted(id, reason = "deleted") {
    if (!this.known.has(id)) return Promise.resolve()
    const done = this.after(id, (session) => session.started && this.report(id, session, "session-end", { reason }))
    this.known.delete(id)
    return done
  }

  end() {
    return limited(Promise.all([...this.known.keys()].map((id) => this.deleted(id, "exit"))), WAIT_MS)
  }
}

function isOff() {
  return [process.env.SIGNET_NO_HOOKS, process.env.SIGNET_BYPASS].some((value) => /^\s*(1|true)\s*$/i.test(value ?? ""))
}

// Return the step as a hook of the program, which must not throw.
function safe(step) {
  return async (input, output) => {
    try {
      return await step(input, output)
    } catch {}
  }
}

function saidIn(parts) {
  const said = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
  return said.map((part) => part.text).join("\n")
}

// What a person answered to tools: to questions, or why one may not run.
function answersIn(parts) {
  const isRefusal = (error) => typeof error === "string" && error.includes("with the following feedback: ")
  const said = ({ tool, state }) => tool === "question" || isRefusal(state.error)
  return parts
    .filter(({ type, state }) => type === "tool" && state)
    .map(({ tool, name, state: { status, input, metadata, error } }) => ({
      type: "tool",
      tool: tool ?? name,
      state: { status, input: { questions: input?.questions }, metadata: { answers: metadata?.answers }, error: error?.message ?? error },
    }))
    .filter(said)
}
