/** Whether this moment was not seen yet: the plugin may stand in the user's folder and in the project's. */
function first(moment) {
  const seen = (globalThis[Symbol.for("khms.seen")] ??= new Set())
  if (seen.has(moment)) return false
  if (seen.size > 10000) seen.clear()
  seen.add(moment)
  return true
}

export const Khms = async ({ directory }) => {
  const parents = new Map() // session -> the one that started it
  const starts = new Map() // session -> how it started, "" once that was told

  const of = (name, session, more) => ask({ hook_event_name: name, session_id: session, cwd: directory, ...more })

  const started = (session) => {
    const source = starts.get(session) ?? "startup"
    starts.set(session, "")
    return source ? of("session.created", session, { source, parent_id: parents.get(session) ?? "" }) : ""
  }

  return {
    event: async ({ event }) => {
      const known = event?.properties ?? {}
      if (event?.type === "session.created" && known.info?.parentID) parents.set(known.info.id, known.info.parentID)
      if (event?.type === "session.compacted") starts.set(known.sessionID, "compact")
    },

    "chat.message": async (input, output) => {
      try {
        const session = input.sessionID
        const last = output.parts.at(-1)
        if (!last?.id || !first(`message ${output.message.id}`)) return
        const said = output.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
        const asked = [started(session)]
        // What a sub-agent is told to do is nobody's question.
        if (!parents.has(session)) asked.push(of("chat.message", session, { prompt: said.join("\n") }))
        const text = (await Promise.all(asked)).filter(Boolean).join("\n")
        // Parts are kept in the order of their ids: this one comes right after the last.
        const own = { id: `${last.id}k`, sessionID: last.sessionID, messageID: last.messageID }
        if (text) output.parts.push({ ...own, type: "text", text, synthetic: true })
      } catch {}
    },

    // The only moment of a tool call at which a plugin can tell the model something without stopping the call.
    "tool.execute.after": async (input, output) => {
      try {
        if (!KNOWN.includes(input.tool) || typeof output.output !== "string" || !first(`call ${input.callID}`)) return
        const used = { tool_name: input.tool, tool_input: input.args }
        const asked = [of("tool.execute.after", input.sessionID, used)]
        if (output.metadata?.exit) asked.push(of("tool.failed", input.sessionID, { ...used, error: output.output }))
        const text = (await Promise.all(asked)).filter(Boolean).join("\n")
        if (text) output.output += `\n\n${text}`
      } catch {}
    },
  }
}

const KNOWN = ["bash", "edit", "write", "multiedit", "patch", "apply_patch"]
