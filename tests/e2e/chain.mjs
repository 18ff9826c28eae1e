// An ENS chain on loopback: anvil, the contracts of ens.mjs, the names of a zone, and a CCIP-Read gateway.
//   node chain.mjs --zone zone.json --chain-id N --ccip-host HOST --cert cert.pem --key key.pem
// The zone is {name: entry} as `addName` takes it; an entry's `pending` holds texts that are set after the last
// finalized block.
// Ready line: {"rpc", "ccip": {"host", "port"}, "finalized", "latest"}.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { finalize, startAnvil } from './anvil.mjs'
import { SIGNER, createGateway } from './ccip.mjs'
import { addName, deployEns, setRecords } from './ens.mjs'
import { listen, serveUntilStdinCloses } from './lifecycle.mjs'

const { values: options } = parseArgs({
  options: Object.fromEntries(['zone', 'chain-id', 'ccip-host', 'cert', 'key'].map((name) => [name, { type: 'string' }])),
})
const host = options['ccip-host']
const zone = JSON.parse(readFileSync(options.zone, 'utf8'))

const gateway = createGateway(zone, { cert: readFileSync(options.cert), key: readFileSync(options.key) })
const port = await listen(gateway)
const { url: rpc, client } = await startAnvil(Number(options['chain-id']))

const ens = await deployEns(client, { url: `https://${host}/{sender}/{data}.json`, signer: SIGNER })
const parentsFirst = Object.entries(zone).sort(([a], [b]) => a.split('.').length - b.split('.').length)
for (const [name, entry] of parentsFirst) await addName(ens, name, entry)
await finalize(client)
for (const [name, { owner, pending }] of parentsFirst) {
  if (pending !== undefined) await setRecords(ens, name, { owner, text: pending })
}

const blockNumber = async (blockTag) => Number((await client.getBlock({ blockTag })).number)
const ready = { rpc, ccip: { host, port }, finalized: await blockNumber('finalized'), latest: await blockNumber('latest') }
serveUntilStdinCloses(ready)
