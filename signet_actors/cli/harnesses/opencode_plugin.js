// Signet: made by `signet connect opencode`, which writes it anew; `signet disconnect opencode` removes the whole file.
//
// It tells the Signet daemon of this machine, by the program signet-hook, what happens in a session, and adds what comes
// back to the system prompt. It never throws, prints nothing, and waits for nothing longer than the limits below.
// OpenCode 1 (from 1.3.4 on) calls `server`, OpenCode 2 calls `setup`.

import { spawn } from "node:child_process"

const HOOKS = {}
const ASK_MS = 1000 // how long OpenCode may take to tell about a session
const WAIT_MS = 4000 // how long a request to the model waits for memories
const TRANSCRIPT_CHARS = 500_000 // the end of a longer conversation is sent; the daemon keeps what it has
const STARTED = Date.now()

// Run the hook of this event, and return the JSON object that it prints; {} if it prints none.
function run(name, event) {
  return new Promise((resolve) => {
    let said = ""
    const hook = HOOKS[name]
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
    child.stdin.end(JSON.stringify({ ...event, hook_event_name: name }))
  })
}

// Return what the promise brings, and undefined if it fails or takes longer.
function limited(promise, ms) {
  let timer
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)))
  return Promise.race([Promise.resolve(promise).catch(() => undefined), late]).finally(() => clearTimeout(timer))
}

// The conversation in the form of `opencode export`, from {role, text, created} of each message.
function exported(id, messages) {
  const kept = []
  let room = TRANSCRIPT_CHARS
  for (const { role, text, created } of messages.filter((message) => message.text).reverse()) {
    room -= text.length + 100
    if (room < 0) break
    kept.unshift({ info: { role, time: { created } }, parts: [{ type: "text", text }] })
  }
  return kept.length ? JSON.stringify({ info: { id }, messages: kept }) : undefined
}

// The sessions of one OpenCode. `host` tells about them: about(id), messages(id), warn(text).
class Sessions {
  known = new Map()

  constructor(host, directory) {
    this.host = host
    this.directory = directory
  }

  // Do the step after those that the session waits for already. A session of a subagent is left alone.
  after(id, step) {
    if (!id) return Promise.resolve()
    const session = this.known.get(id) ?? { texts: [], queue: Promise.resolve() }
    this.known.set(id, session)
    session.queue = session.queue
      .then(async () => {
        session.about ??= (await limited(this.host.about(id), ASK_MS)) ?? {}
        if (!session.about.parentID) await step(session)
      })
      .catch(() => {})
    return session.queue
  }

  // Run a hook of the session, and keep the text that comes back for the model.
  async report(id, session, name, event = {}) {
    const cwd = session.about.directory ?? this.directory
    const answer = await run(name, { session_id: id, cwd, ...event })
    const text = answer.hookSpecificOutput?.additionalContext
    if (typeof text === "string" && text) session.texts.push(text)
    if (typeof answer.systemMessage === "string") await limited(this.host.warn(answer.systemMessage), ASK_MS)
  }

  prompt(id, text) {
    return this.after(id, async (session) => {
      if (!session.started) {
        session.started = true
        // What an earlier process added to the system prompt is gone, as after a compaction.
        const source = session.about.created < STARTED ? "compact" : "startup"
        await this.report(id, session, "session.created", { source })
      }
      if (text.trim()) await this.report(id, session, "chat.message", { prompt: text })
    })
  }

  // Return what the model of the session is to know, all of it at each request: nothing comes twice from the daemon.
  async texts(id) {
    const session = this.known.get(id)
    if (!session) return []
    await limited(session.queue, WAIT_MS)
    return session.texts
  }

  compacting(id) {
    return this.after(id, (session) => this.report(id, session, "experimental.session.compacting"))
  }

  compacted(id, summary) {
    return this.after(id, async (session) => {
      session.texts = []
      session.started = true
      await this.report(id, session, "session.compacted", { compact_summary: await summary() })
      await this.report(id, session, "session.created", { source: "compact" })
    })
  }

  idle(id) {
    return this.after(id, async (session) => {
      const transcript = exported(id, (await limited(this.host.messages(id), ASK_MS)) ?? [])
      if (transcript) await this.report(id, session, "session.idle", { transcript })
    })
  }

  deleted(id, reason = "deleted") {
    if (!this.known.has(id)) return Promise.resolve()
    const done = this.after(id, (session) => session.started && this.report(id, session, "session.deleted", { reason }))
    this.known.delete(id)
    return done
  }

  end() {
    return limited(Promise.all([...this.known.keys()].map((id) => this.deleted(id, "exit"))), WAIT_MS)
  }
}

function isOff() {
  return process.env.SIGNET_NO_HOOKS === "1" || process.env.SIGNET_BYPASS === "1"
}

// Return the step as a hook of OpenCode, which must not throw.
function safe(step) {
  return async (input, output) => {
    try {
      await step(input, output)
    } catch {}
  }
}

function saidIn(parts) {
  const said = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
  return said.map((part) => part.text).join("\n")
}

// OpenCode 1.
async function server({ client, directory }) {
  if (isOff()) return {}
  const messages = async (id) => (await client.session.messages({ path: { id } })).data
  const sessions = new Sessions(
    {
      async about(id) {
        const { parentID, directory, time } = (await client.session.get({ path: { id } })).data
        return { parentID, directory, created: time.created }
      },
      async messages(id) {
        const found = (await messages(id)).filter(({ info }) => !info.summary)
        return found.map(({ info, parts }) => ({ role: info.role, created: info.time.created, text: saidIn(parts) }))
      },
      warn: (message) => client.tui.showToast({ body: { message, variant: "warning" } }),
    },
    directory,
  )
  const summary = async (id) => {
    const found = (await limited(messages(id), ASK_MS)) ?? []
    return saidIn(found.findLast(({ info }) => info.summary === true)?.parts ?? [])
  }
  return {
    "chat.message": safe((input, output) => void sessions.prompt(input.sessionID, saidIn(output.parts))),
    "experimental.chat.system.transform": safe(async (input, output) => {
      output.system.push(...(await sessions.texts(input.sessionID)))
    }),
    "experimental.session.compacting": safe((input) => void sessions.compacting(input.sessionID)),
    event: safe(({ event }) => {
      const id = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.idle") void sessions.idle(id)
      if (event.type === "session.compacted") void sessions.compacted(id, () => summary(id))
      if (event.type === "session.deleted") void sessions.deleted(id)
    }),
    dispose: safe(() => sessions.end()),
  }
}

// OpenCode 2.
async function setup(context) {
  if (isOff()) return
  const told = (answer) => answer?.data ?? answer
  const sessions = new Sessions(
    {
      async about(id) {
        const { parentID, location, time } = told(await context.session.get({ sessionID: id }))
        return { parentID, directory: location?.directory, created: Number(time?.created) }
      },
      async messages(id) {
        const found = told(await context.session.context({ sessionID: id }))
        return found
          .filter(({ type }) => type === "user" || type === "assistant")
          .map(({ type, text, content, time }) => ({
            role: type,
            created: Number(time?.created) || undefined,
            text: type === "user" ? text : saidIn(content),
          }))
      },
      warn: async () => {},
    },
    context.location?.directory ?? process.cwd(),
  )
  const hook = safe((name, step) => context.session.hook(name, safe(step)))
  await hook("prompt", (event) => void sessions.prompt(event.sessionID, event.prompt.text))
  await hook("context", async (event) => {
    event.system.push(...(await sessions.texts(event.sessionID)).map((text) => ({ type: "text", text })))
  })
  await hook("compaction", (event) => void sessions.compacting(event.sessionID))
  const events = context.event.subscribe()[Symbol.asyncIterator]()
  const read = safe(async () => {
    for (let next = await events.next(); !next.done; next = await events.next()) {
      const { type, data } = next.value
      if (!sessions.known.has(data?.sessionID)) continue
      if (type.startsWith("session.execution.") && !type.endsWith(".started")) void sessions.idle(data.sessionID)
      if (type === "session.compaction.ended") void sessions.compacted(data.sessionID, async () => data.text)
      if (type === "session.deleted") void sessions.deleted(data.sessionID)
    }
  })
  void read()
  return async () => {
    void events.return?.()
    await sessions.end()
  }
}

export default { id: "signet", server, setup }
