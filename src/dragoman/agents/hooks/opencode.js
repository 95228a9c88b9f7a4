// A plugin for OpenCode: asks Dragoman about every tool call before it runs; a call that is not allowed fails with the
// reason. OpenCode loads it because Dragoman names it in OPENCODE_CONFIG_CONTENT. Whatever goes wrong here, the call fails.
import fs from "node:fs"
import net from "node:net"
import path from "node:path"

const LONGEST = 100 // bytes of a socket's path: the kernel takes little more

function connect(address) {
  if (Buffer.byteLength(address) <= LONGEST) return net.connect(address)
  const folder = fs.openSync(path.dirname(address), fs.constants.O_RDONLY)
  const socket = net.connect(`/proc/self/fd/${folder}/${path.basename(address)}`)
  socket.on("close", () => fs.closeSync(folder))
  return socket
}

function ask(call) {
  const told = process.env.DRAGOMAN_HOOK ?? ""
  const mark = told.lastIndexOf("#")
  const body = Buffer.from(JSON.stringify(call))
  return new Promise((resolve, reject) => {
    const parts = []
    const socket = connect(told.slice(0, mark))
    socket.on("error", (error) => reject(new Error(`Dragoman's rules cannot be asked (${error.message}).`)))
    socket.on("data", (part) => parts.push(part))
    socket.on("end", () => {
      const answer = Buffer.concat(parts).toString()
      const end = answer.indexOf("\n")
      resolve(end < 0 ? ["2", "Dragoman ended before its rules decided about this call."]
        : [answer.slice(0, end), answer.slice(end + 1)])
    })
    socket.on("connect", () => {
      socket.write(`${told.slice(mark + 1)} ${body.length}\n`)
      socket.write(body)
    })
  })
}

export default async ({ client }) => {
  const roots = new Map() // a subagent works in a session of its own, below the one that the client knows

  async function root(id) {
    if (!roots.has(id)) {
      const found = await client.session.get({ path: { id } })
      if (!found.data) throw new Error(`Dragoman's rules cannot be asked (there is no session ${id}).`)
      roots.set(id, found.data.parentID ? await root(found.data.parentID) : id)
    }
    return roots.get(id)
  }

  return {
    "tool.execute.before": async (input, output) => {
      const [code, text] = await ask({
        session_id: await root(input.sessionID),
        tool_name: input.tool,
        tool_use_id: input.callID,
        tool_input: output.args ?? {},
      })
      if (code !== "0") throw new Error(text)
    },
  }
}
