// Written by khms: `khms hook install HOST` writes it anew, `khms hook uninstall HOST` takes it away.
//
// This host has no hooks that are commands, so this program asks khms's own client, one process an event. Whatever goes
// wrong with that, and whatever takes longer than LIMIT_MS, is silence: the session goes on as if this was not here.

import { spawn } from "node:child_process"

const COMMAND = ["@COMMAND@"]
const LIMIT_MS = 5000
const CHARS = 100000 // of one text that are passed on; the client takes no event of more than a megabyte

/** What khms has to say to an event; "" for nothing. Never rejects. */
function ask(payload) {
  return new Promise((resolve) => {
    let timer
    const end = (text) => {
      clearTimeout(timer)
      resolve(text)
    }
    try {
      const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
      timer = setTimeout(() => {
        child.kill("SIGKILL")
        end("")
      }, LIMIT_MS)
      const parts = []
      child.stdout.on("data", (part) => parts.push(part))
      child.on("error", () => end(""))
      child.stdin.on("error", () => {})
      child.on("close", () => end(told(Buffer.concat(parts).toString("utf8"))))
      child.stdin.end(JSON.stringify(payload, (_, value) => (typeof value === "string" ? value.slice(0, CHARS) : value)))
    } catch {
      end("")
    }
  })
}

function told(line) {
  try {
    const text = JSON.parse(line).text
    return typeof text === "string" ? text : ""
  } catch {
    return ""
  }
}
