// An HTTPS origin on loopback that serves directories.
//   node origin.mjs --cert cert.pem --key key.pem PREFIX=DIR...
// Ready line: {"port"}. A file is read anew for each request.
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { listen, serveUntilStdinCloses } from './lifecycle.mjs'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { cert: { type: 'string' }, key: { type: 'string' } },
})
const mounts = positionals.map((mount) => mount.split('='))

/** The file behind a path of a URL, or undefined. */
function locate(pathname) {
  const mount = mounts.find(([prefix]) => pathname.startsWith(`${prefix}/`))
  if (mount === undefined) return undefined
  const [prefix, directory] = mount
  return path.join(directory, path.posix.normalize(decodeURIComponent(pathname.slice(prefix.length))))
}

async function answer(request, response) {
  try {
    const { pathname } = new URL(request.url, 'https://origin.invalid')
    const body = await readFile(locate(pathname))
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
  } catch {
    response.writeHead(404).end()
  }
}

const server = createServer({ cert: readFileSync(options.cert), key: readFileSync(options.key) }, answer)
serveUntilStdinCloses({ port: await listen(server) })
