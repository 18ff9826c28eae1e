// An HTTPS origin on loopback that serves the files that directories hold when it starts.
//   node origin.mjs --cert cert.pem --key key.pem PREFIX=DIR...
// Ready line: {"port"}.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { parseArgs } from 'node:util'
import { readFiles } from './files.mjs'
import { listen, serveUntilStdinCloses } from './lifecycle.mjs'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { cert: { type: 'string' }, key: { type: 'string' } },
})

const bodies = new Map()
for (const mount of positionals) {
  const [prefix, directory] = mount.split('=')
  for (const { path, content } of await readFiles(directory)) bodies.set(`${prefix}/${path}`, content)
}

function answer(request, response) {
  const body = bodies.get(request.url)
  if (body === undefined) return response.writeHead(404).end()
  response.writeHead(200, { 'content-type': 'application/json' }).end(body)
}

const server = createServer({ cert: readFileSync(options.cert), key: readFileSync(options.key) }, answer)
serveUntilStdinCloses({ port: await listen(server) })
