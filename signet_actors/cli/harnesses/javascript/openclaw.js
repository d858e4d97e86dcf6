const TOOLS = {}
const SERVER = {}
const CALL_MS = 30_000

// One `signet mcp` for each agent, started by its first call of a tool.
class Server {
  constructor(agent) {
    const named = agent && !SERVER.args.includes("--agent") ? ["--agent", agent] : []
    this.child = spawn(SERVER.command, [...SERVER.args, ...named], { stdio: ["pipe", "pipe", "ignore"] })
    this.asked = new Map()
    this.heard = ""
    this.child.on("error", () => this.end())
    this.child.on("close", () => this.end())
    this.child.stdin.on("error", () => {})
    this.child.stdout.setEncoding("utf8")
    this.child.stdout.on("data", (part) => this.hear(part))
    const clientInfo = { name: "signet-openclaw", version: "1" }
    this.ready = this.ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo }).then(() =>
      this.tell({ method: "notifications/initialized" }),
    )
    this.ready.catch(() => {})
  }

  tell(message) {
    this.child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n")
  }

  ask(method, params) {
    const id = ++Server.number
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.answer(id, { message: "no answer in time" }), CALL_MS)
      this.asked.set(id, { resolve, reject, timer })
      this.tell({ id, method, params })
    })
  }

  hear(part) {
    const lines = (this.heard + part).split("\n")
    this.heard = lines.pop()
    for (const line of lines) {
      try {
        const { id, result, error } = JSON.parse(line)
        this.answer(id, error, result)
      } catch {}
    }
  }

  answer(id, error, result) {
    const waiting = this.asked.get(id)
    if (!waiting) return
    this.asked.delete(id)
    clearTimeout(waiting.timer)
    if (error) waiting.reject(new Error(`signet mcp: ${error.message}`))
    else waiting.resolve(result)
  }

  end() {
    this.ended = true
    this.child.kill()
    for (const id of [...this.asked.keys()]) this.answer(id, { message: "it ended, or cannot be started" })
  }
}
Server.number = 0

function register(api) {
  if (isOff()) return
  const seen = new Map() // the last that is known of each session: the context of a hook, and its messages
  const servers = new Map() // by agent
  const sessions = new Sessions(
    {
      async about(id) {
        const { context, messages } = seen.get(id)
        const parentID = context.sessionKey?.includes(":subagent:")
        return { parentID, directory: context.workspaceDir, isOld: messages.length > 1 } // with this prompt
      },
      async messages(id) {
        const said = seen.get(id).messages.filter(({ role }) => role === "user" || role === "assistant")
        return said.map(({ role, content, timestamp }) => ({
          role,
          created: Number(timestamp) || undefined,
          text: typeof content === "string" ? content : saidIn(content ?? []),
        }))
      },
      warn: async (message) => api.logger?.warn?.(message),
    },
    process.cwd(),
  )
  // A session key names the agent and lasts; the session id changes when the conversation begins anew.
  const note = (event, context) => {
    const { sessionId = event.sessionId, sessionKey = event.sessionKey } = context ?? {}
    const id = [sessionKey, sessionId].filter(Boolean).join(":")
    const known = seen.get(id) ?? { messages: [], context: {} }
    if (event.messages) known.messages = event.messages
    Object.assign(known.context, context)
    seen.set(id, known)
    return id
  }
  const on = (name, step) => api.on(name, safe(step))
  on("before_prompt_build", async (event, context) => {
    const id = note(event, context)
    const known = seen.get(id)
    const isRepeated = context.runId !== undefined && known.runId === context.runId // the prompt is built anew
    known.runId = context.runId
    const prompt = (context.trigger ?? "user") === "user" ? (event.currentUserMessage ?? event.prompt ?? "") : ""
    if (!isRepeated) void sessions.prompt(id, prompt)
    const texts = await sessions.texts(id)
    return texts.length ? { appendSystemContext: texts.join("\n\n") } : undefined
  })
  on("agent_end", (event, context) => void sessions.idle(note(event, context)))
  on("before_compaction", (event, context) => void sessions.compacting(note({}, context)))
  on("after_compaction", (event, context) => void sessions.compacted(note({}, context), async () => ""))
  on("session_end", async (event, context) => {
    const id = note(event, context)
    await limited(sessions.deleted(id, event.reason), WAIT_MS)
    seen.delete(id)
  })
  on("gateway_stop", async () => {
    for (const server of servers.values()) server.end()
    await sessions.end()
  })
  for (const [name, { tool, ...about }] of Object.entries(TOOLS)) {
    const call = async (agent, params) => {
      if (!servers.has(agent) || servers.get(agent).ended) servers.set(agent, new Server(agent))
      const server = servers.get(agent)
      await server.ready
      return server.ask("tools/call", { name: tool, arguments: params ?? {} })
    }
    const execute = (context) => (_id, params) => call(context?.agentId, params)
    api.registerTool((context) => ({ ...about, name, label: name, execute: execute(context) }), { name })
  }
}

export default { id: "signet", name: "Signet", description: "Long-term memory", register }
