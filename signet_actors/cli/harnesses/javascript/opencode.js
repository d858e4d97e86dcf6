const STARTED = Date.now()

// OpenCode 1.
async function server({ client, directory }) {
  if (isOff()) return {}
  const messages = async (id) => (await client.session.messages({ path: { id } })).data
  const sessions = new Sessions(
    {
      async about(id) {
        const { parentID, title, directory, time } = (await client.session.get({ path: { id } })).data
        return { parentID, title, directory, isOld: time.created < STARTED }
      },
      async messages(id) {
        const found = (await messages(id)).filter(({ info }) => info.summary !== true) // a user message has an object there
        return found.map(({ info, parts }) => ({
          role: info.role,
          created: info.time.created,
          text: saidIn(parts),
          answers: answersIn(parts),
        }))
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
    "experimental.session.compacting": safe(async (input, output) => {
      output.context.push(...(await sessions.compacting(input.sessionID)))
    }),
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
        const { parentID, title, location, time } = told(await context.session.get({ sessionID: id }))
        return { parentID, title, directory: location?.directory, isOld: Number(time?.created) < STARTED }
      },
      async messages(id) {
        const found = told(await context.session.context({ sessionID: id }))
        return found
          .filter(({ type }) => type === "user" || type === "assistant")
          .map(({ type, text, content, time }) => ({
            role: type,
            created: Number(time?.created) || undefined,
            text: type === "user" ? text : saidIn(content),
            answers: answersIn(content ?? []),
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
  await hook("compaction", async (event) => {
    event.system.push(...(await sessions.compacting(event.sessionID)).map((text) => ({ type: "text", text })))
  })
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
