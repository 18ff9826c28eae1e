// The world of the purchases: a trusted agent on a chain, its seller and a thief, and the daemon that knows the agent.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { toHex } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { listen } from '../e2e/lifecycle.mjs'
import { CHAIN, DOLLAR, balanceOf, startChains } from './chains.mjs'
import { Daemon } from './daemon.mjs'
import { SELLER_NAME, THIEF_NAME } from './attacks.mjs'
import { startSellers } from './sellers.mjs'
import { startAxum, startExpress } from './shops.mjs'
import { Service } from './service.mjs'

export const AGENT = 'summarizeagent.eth'
export const VERB = 'summarize'

/** The daemon's name on what it signs. */
export const ISSUER = 'https://clresolve.example'

/** Who signs the sandbox's receipts, with a key that everybody has. */
export const SIGNER = 'runtime.sandbox.eth'
export const SIGNER_RECORDS = {
  'cl.sig.pub': 'ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=',
  'cl.sig.kid': 'test-key-7',
  'cl.sig.canonical': 'json.sorted_keys.v1',
}

/** Most that the daemon lets one payment move: 0.05. */
const MAX_AMOUNT = 50_000
/** ENSIP-11: an EVM chain's coin type is its id with this bit. */
const EVM_COIN = 0x80000000

const PUBLISHER = '0x00000000000000000000000000000000000000c1'
const CARD_PATH = 'agents/v1.0.0/commons/summarizeagent.eth.json'

/** anvil's accounts; everybody knows their keys. */
const MNEMONIC = 'test test test test test test test test test test test junk'
const account = (addressIndex) => mnemonicToAccount(MNEMONIC, { addressIndex })
const keyOf = (account) => toHex(account.getHdKey().privateKey)

/** Starts everything, which lives as long as this process. `executable` is the daemon's, `axum` that of a shop (axum/). */
export async function startWorld(executable, axum) {
  const [payer, agent, thief, facilitator] = [1, 2, 3, 4].map(account)
  const folder = mkdtempSync(join(tmpdir(), 'clresolve-purchases-'))
  process.on('exit', () => rmSync(folder, { recursive: true }))
  const sellers = await startSellers()
  const [{ rpc, tokens, register, finalize }, gateway] = await Promise.all([startChains(payer.address), startGateway(folder)])
  await register({ ...zone(gateway.cid, agent.address), ...cardless(sellers, agent.address, thief.address) })
  const configuration = configurationOf(rpc, gateway.url, tokens.dollar.address, sellers.agent)
  const remembering = `\n[memory]\npath = "${join(folder, 'memory')}"\n`
  const further = `${signingWith(executable, folder)}${remembering}`
  const daemon = await Daemon.start(executable, `${configuration}${further}`, folder)
  const control = await startControl(daemon)
  const config = join(folder, 'receipts.toml')
  writeFileSync(config, `${configuration}\n[chains.${CHAIN.id}]\nrpc = [{ url = "${rpc}", own = true }]\n`)
  const shops = { express: await startExpress(tokens.dollar, agent.address) }
  if (axum !== undefined) {
    const sale = { rpc, url: sellers.agent, payTo: agent.address, key: keyOf(facilitator) }
    shops.axum = await startAxum(axum, tokens.dollar, sale)
  }
  const world = { payer, payerKey: keyOf(payer), agent, thief, sellers, shops, tokens, daemon, control, finalize, folder, config }
  world.holdings = async () => await holdings(world)
  world.log = () => readFileSync(join(folder, 'clresolve.log'), 'utf8')
  return world
}

/** What payer, agent and thief have of each token, as {token: {who: amount}}. */
async function holdings(world) {
  const of = async (token) => {
    const amounts = ['payer', 'agent', 'thief'].map(async (who) => [who, await balanceOf(token, world[who].address)])
    return Object.fromEntries(await Promise.all(amounts))
  }
  const all = Object.entries(world.tokens).map(async ([name, token]) => [name, await of(token)])
  return Object.fromEntries(await Promise.all(all))
}

/** The IPFS gateway of tests/e2e with the agent's card. */
async function startGateway(folder) {
  const release = join(folder, 'release')
  const file = join(release, CARD_PATH)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, card())
  const script = fileURLToPath(new URL('../e2e/gateway.mjs', import.meta.url))
  const service = new Service(process.execPath, [script, release])
  const { url, directories } = await service.next()
  return { url, cid: directories[0].cid }
}

function card() {
  return readFileSync(new URL('card.json', import.meta.url))
}

/** The names, as `addName` takes them: the publisher, and the agent with the records of its card and its account. */
function zone(cid, address) {
  const { $id, owner, entry, implements: verbs, version, schemas } = JSON.parse(card())
  const schemaCid = /^ipfs:\/\/([^/]+)\//.exec(schemas.request)[1]
  const text = {
    'cl.entry': entry,
    'cl.agentcard': $id,
    'cl.cid.agentcard': cid,
    'cl.agentcard.mirror.ipfs': `ipfs://${cid}/${CARD_PATH}`,
    'cl.checksum.agentcard': `sha256:${createHash('sha256').update(card()).digest('hex')}`,
    'cl.owner': owner,
    'cl.verb': verbs[0],
    'cl.version': version,
    'cl.schema.request': schemas.request,
    'cl.schema.receipt': schemas.receipt,
    'cl.cid.schemas': schemaCid,
    'cl.schemas.mirror.ipfs': `ipfs://${schemaCid}`,
    'cl.receipt.signer': SIGNER,
  }
  return {
    [owner]: { owner: PUBLISHER, addr: PUBLISHER, resolver: 'public' },
    'sandbox.eth': { owner: PUBLISHER, resolver: 'none' },
    [SIGNER]: { owner: PUBLISHER, resolver: 'public', text: SIGNER_RECORDS },
    [AGENT]: { owner: PUBLISHER, resolver: 'public', text, addresses: { [EVM_COIN + CHAIN.id]: address } },
  }
}

/** Names without a card, of the agent and of the thief. Each has the account of its owner, and points to its URL. */
function cardless(sellers, agent, thief) {
  const entry = (owner, address, url) => {
    const addresses = { [EVM_COIN + CHAIN.id]: address }
    return { owner, resolver: 'public', text: { 'agent-endpoint[x402]': url }, addresses }
  }
  return { [SELLER_NAME]: entry(PUBLISHER, agent, sellers.agent), [THIEF_NAME]: entry(thief, thief, sellers.thief) }
}

function configurationOf(rpc, gateway, asset, route) {
  return `
world = "purchases"
chain-id = ${CHAIN.id}
# The card is served by IPFS alone: nothing listens there.
connect-to = ["commandlayer.org:443:127.0.0.1:9"]

[[rpc]]
url = "${rpc}"
own = true

[[gateway]]
url = "${gateway}"

[routes]
"${AGENT}/${VERB}" = "${route}"

[limits]
networks = "limits"

[[limits.assets]]
network = "${CHAIN.network}"
address = "${asset}"
max-amount = "${MAX_AMOUNT}"
name = "${DOLLAR.name}"
version = "${DOLLAR.version}"
decimals = ${DOLLAR.decimals}
symbol = "${DOLLAR.symbol}"
`
}

/** The part of the configuration by which the daemon signs, with a key of its own. */
function signingWith(executable, folder) {
  const key = join(folder, 'sign.pem')
  const { status, stderr } = spawnSync(executable, ['signature', 'key', 'new', key], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`no key to sign with: ${stderr}`)
  return `\n[sign]\nkey = "${key}"\nissuer = "${ISSUER}"\n`
}

/** Where a buyer kills the daemon: any request does, and is answered when it is gone. */
async function startControl(daemon) {
  const server = createServer(async (_, response) => {
    await daemon.kill()
    response.end()
  })
  return `http://127.0.0.1:${await listen(server)}/`
}
