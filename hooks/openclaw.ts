/** Adds what khms has to say at a session's start to the files that OpenClaw puts before the model. */
export default async function khms(event) {
  try {
    const files = event?.context?.bootstrapFiles
    if (event?.type !== "agent" || event.action !== "bootstrap" || !Array.isArray(files)) return
    const key = event.sessionKey ?? event.context.sessionKey ?? ""
    const cwd = event.context.workspaceDir ?? ""
    const text = await ask({
      hook_event_name: "agent:bootstrap",
      session_id: event.context.sessionId ?? key,
      parent_id: key.includes(":subagent:") ? key : "",
      cwd,
    })
    const name = "KHMS.md"
    if (text) files.push({ name, path: `${cwd}/${name}`, content: text, missing: false, virtual: true })
  } catch {}
}
