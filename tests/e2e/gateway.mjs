// A trustless IPFS gateway on loopback: helia and @helia/verified-fetch over blocks that ipfs-unixfs-importer made.
//   node gateway.mjs [--hamt DIR]... DIR...
// Each DIR is imported as a UnixFS directory; one after --hamt has all its directories sharded.
// Ready line: {"url", "directories": [{"path", "cid"}]}, in the order of the command line, sharded ones first.
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { createVerifiedFetch } from '@helia/verified-fetch'
import { MemoryBlockstore } from 'blockstore-core'
import { MemoryDatastore } from 'datastore-core'
import { createHeliaLight } from 'helia'
import { importer } from 'ipfs-unixfs-importer'
import { readFiles } from './files.mjs'
import { listen, serveUntilStdinCloses } from './lifecycle.mjs'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { hamt: { type: 'string', multiple: true, default: [] } },
})
const blockstore = new MemoryBlockstore()

/** Imports a directory and returns the CID of its root. */
async function importDirectory(directory, settings) {
  let root
  const imported = importer(await readFiles(directory), blockstore, { ...settings, wrapWithDirectory: true })
  for await (const entry of imported) root = entry
  return { path: directory, cid: root.cid.toString() }
}

const directories = []
for (const directory of options.hamt) directories.push(await importDirectory(directory, { shardSplitThresholdBytes: 0 }))
for (const directory of positionals) directories.push(await importDirectory(directory, {}))

// No brokers and no routers: what was not imported does not exist.
const helia = await createHeliaLight({
  blockstore,
  datastore: new MemoryDatastore(),
  blockBrokers: [],
  routers: [],
}).start()
const verifiedFetch = await createVerifiedFetch(helia)

async function answer(request, response) {
  try {
    const { accept = '*/*' } = request.headers
    const reply = await verifiedFetch(request.url, { method: request.method, headers: { accept }, session: false })
    response.writeHead(reply.status, Object.fromEntries(reply.headers))
    await pipeline(Readable.fromWeb(reply.body ?? new Blob([]).stream()), response)
  } catch (error) {
    if (response.headersSent) return response.destroy()
    response.writeHead(404, { 'content-type': 'text/plain' }).end(`${error.name}\n`)
  }
}

const port = await listen(createServer(answer))
serveUntilStdinCloses({ url: `http://127.0.0.1:${port}`, directories })
