// Buys with each client in each attack, plain and guarded, and prints the table of who was paid (README.md).
//   node purchases.mjs --daemon EXECUTABLE [--rust EXECUTABLE] [--axum EXECUTABLE] [CLIENT...]
// Exit 0: every purchase ended as attacks.mjs says. 1: one did not.
import { createHash, generateKeyPairSync } from 'node:crypto'
import { parseArgs } from 'node:util'
import { ATTACKS, HONEST, offerOf } from './attacks.mjs'
import { CLIENTS } from './clients.mjs'
import { Service } from './service.mjs'
import { buyWhole } from './whole.mjs'
import { AGENT, ISSUER, VERB, startWorld } from './world.mjs'

/** Milliseconds for each answer of the daemon: its first run for a name is a cold one, on a busy machine. */
const GUARD_TIMEOUT = 20_000
/** How a client says that its own controls forbid an asset. */
const OWN_CONTROLS = /spend_?controls/i

const YEAR_SECONDS = 365 * 24 * 3600

/** Purchases whose guard takes none but signed decisions: as attacks.mjs says, for the daemon's keys and for those of another. */
const SIGNED = {
  own: { name: 'none, on signed decisions', entries: [{}], leaves: ['agent'] },
  foreign: { name: "decisions by another's key", entries: [{}], guarded: 'unavailable', codes: [] },
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    daemon: { type: 'string' },
    rust: { type: 'string' },
    axum: { type: 'string' },
  },
})

const names = positionals.length > 0 ? positionals : Object.keys(CLIENTS)
const unknown = names.filter((name) => !(name in CLIENTS))
if (unknown.length > 0) fail(64, `no such client: ${unknown.join(', ')} (there are ${Object.keys(CLIENTS).join(', ')})`)

const world = await startWorld(options.daemon, options.axum)
const purchases = []
const further = []
try {
  for (const name of names) purchases.push(...(await buyWith(name)))
  further.push(...(await whole(names[0])))
} catch (error) {
  fail(1, `${world.log()}${error.stack}`)
}

console.log(`Whom each client pays, plain / with its guard:\n\n${tableOf(purchases)}`)
const faults = [...purchases.flatMap(faultsOf), ...further]
for (const fault of faults) console.error(fault)
console.log(`\n${purchases.length * 2} purchases, ${faults.length} faults`)
process.exit(faults.length > 0 ? 1 : 0)

/** All attacks with one client, each as {client, attack, plain, guarded}. */
async function buyWith(name) {
  const client = CLIENTS[name]
  const buyer = new Service(...client.command(options))
  const purchases = []
  for (const attack of ATTACKS.filter((attack) => isMade(attack, client))) {
    const plain = await buy(buyer, client, attack, null)
    const guarded = await buy(buyer, client, attack, guardOf(undefined, attack.whom))
    console.error(`${name}, ${attack.name}: ${payeesOf(plain)} / ${payeesOf(guarded)} ${saidBy(guarded)}`)
    purchases.push({ client, attack, plain, guarded })
  }
  further.push(...(await buySigned(buyer, client)))
  await buyer.end()
  return purchases
}

/** The purchases on signed decisions. Resolves to what is not as it should be. */
async function buySigned(buyer, client) {
  await world.daemon.revive()
  const keys = { own: await ownKeys(), foreign: newKeys() }
  const faults = []
  for (const [whose, attack] of Object.entries(SIGNED)) {
    const guard = guardOf(keys[whose])
    const guarded = await buy(buyer, client, attack, guard)
    console.error(`${client.title}, ${attack.name}: ${payeesOf(guarded)} ${saidBy(guarded)}`)
    faults.push(...faultsOfGuarded({ client, attack, guarded }))
  }
  return faults
}

/** The daemon's own keys. */
async function ownKeys() {
  return await (await fetch(`${world.daemon.url}/.well-known/jwks.json`)).json()
}

/** A set of one key that nobody signs with, as a daemon publishes its own. */
function newKeys() {
  const { crv, kty, x } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
  const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url')
  return { keys: [{ crv, kty, x, kid, use: 'sig', alg: 'EdDSA' }] }
}

/** Whether a client is attacked so: it is not limited to others, it speaks that version, and the shop is there. */
function isMade({ id, version, shop }, client) {
  if (client.attacks?.includes(id) === false) return false
  return (version ?? client.version) === client.version && (shop === undefined || shop in world.shops)
}

/** Whole purchases with one client on signed decisions, if it buys from each honest seller: one by each way to move a token. */
async function whole(name) {
  const client = CLIENTS[name]
  if (!HONEST.every((honest) => isMade(honest, client))) return []
  await world.daemon.revive()
  const buyer = new Service(...client.command(options))
  const guard = guardOf(await ownKeys())
  const buy = (offer, request) => asked(buyer, offer, {}, guard, request)
  const faults = []
  for (const honest of HONEST) faults.push(...(await buyWhole(world, options.daemon, honest, buy)))
  await buyer.end()
  return faults
}

/** What a guard is made of; with `jwks` decisions must be signed by one of them. `whom` is whom it pays. */
function guardOf(jwks, whom = { agent: AGENT, verb: VERB }) {
  const signer = jwks === undefined ? undefined : { issuer: ISSUER, jwks }
  return { daemon: world.daemon.url, ...whom, timeout: GUARD_TIMEOUT, signer }
}

/** One purchase: how it ended, and whom it paid on the chain. */
async function buy(buyer, client, attack, guard) {
  await world.daemon.revive()
  const offer = await offerOf(world, attack, client.version)
  world.sellers.sell(offer)
  const before = await world.holdings()
  const end = await asked(buyer, offer, attack, guard)
  const moved = differenceOf(await world.holdings(), before)
  return { ...end, payments: offer.shop === undefined ? world.sellers.settled : paymentsOf(moved), moved }
}

/** What a shop has settled, by what moved: it tells nobody else. */
function paymentsOf({ agent, thief }) {
  return Object.entries({ agent, thief }).filter(([, value]) => value > 0n).map(([who, value]) => ({ who, value, seconds: 0 }))
}

/** The buyer's answer. `body` is what it sends to the seller. */
async function asked(buyer, offer, attack, guard, body = null) {
  return await buyer.ask({
    url: world.sellers[attack.at ?? 'agent'],
    key: world.payerKey,
    network: offer.token.chain.v1,
    assets: permittedAssets(),
    body,
    guard,
    trick: attack.trick ?? null,
    thief: world.thief.address,
    kill: world.control,
  })
}

/** What the buyer's own limits permit: its dollars on both chains, and not the token of the same name. */
function permittedAssets() {
  const { dollar, elsewhere } = world.tokens
  return [dollar, elsewhere].map(({ chain, address }) => ({ network: chain.network, asset: address }))
}

/** What each account has more than before, as {who: amount} over all tokens. */
function differenceOf(after, before) {
  const moved = { payer: 0n, agent: 0n, thief: 0n }
  for (const [token, amounts] of Object.entries(after)) {
    for (const [who, amount] of Object.entries(amounts)) moved[who] += amount - before[token][who]
  }
  return moved
}

/** What is not as it should be, as sentences. */
function faultsOf({ client, attack, plain, guarded }) {
  const faults = [...wrongPayments(plain, client.plain?.[attack.id] ?? attack.plain), ...wrongPlainEnd(plain)]
  return [...named(client, attack, faults), ...faultsOfGuarded({ client, attack, guarded })]
}

function faultsOfGuarded({ client, attack, guarded }) {
  return named(client, attack, [...wrongPayments(guarded, attack.leaves ?? []), ...wrongGuardedEnd(guarded, attack)])
}

function named(client, attack, faults) {
  return faults.map((fault) => `${client.title}, ${attack.name}: ${fault}`)
}

/** What the sellers settled must be what is expected, and what moved on the chain. */
function* wrongPayments(purchase, paid) {
  const payees = purchase.payments.map(({ who }) => who)
  if (`${payees}` !== `${paid}`) yield `paid ${payees}, expected ${paid}`
  for (const who of ['agent', 'thief']) {
    const moved = purchase.moved[who]
    if (moved !== sumOf(purchase.payments, who)) yield `the balance of the ${who} moved by ${moved}`
  }
  const spent = -purchase.moved.payer
  if (spent !== sumOf(purchase.payments)) yield `the payer has ${spent} less`
}

/** A plain client pays, or says that its own controls keep it from that. */
function* wrongPlainEnd({ payments, failed, refused }) {
  if (refused !== undefined) yield `refused without a guard: ${refused}`
  if (payments.length === 0 && !OWN_CONTROLS.test(failed)) yield `ended without a payment: ${failed}`
}

function* wrongGuardedEnd({ status, refused, codes, failed }, attack) {
  const expected = attack.status ?? 200
  if (attack.guarded === undefined && status !== expected) yield `the guarded client got ${status ?? refused ?? failed}`
  if (refused !== attack.guarded) yield `the guard said ${refused ?? status ?? failed}, expected ${attack.guarded}`
  const missing = attack.codes?.filter((code) => !codes?.includes(code)) ?? []
  if (missing.length > 0) yield `the daemon said ${codes}, not ${missing}`
}

/** What was paid, in all or to one. */
function sumOf(payments, to) {
  return payments.filter(({ who }) => to === undefined || who === to).reduce((sum, { value }) => sum + value, 0n)
}

/** A row for each attack, a column for each client. */
function tableOf(purchases) {
  const clients = [...new Set(purchases.map(({ client }) => client))].filter(({ hasColumn = true }) => hasColumn)
  const row = (cells) => `| ${cells.join(' | ')} |`
  const rows = ATTACKS.map((attack) => {
    const cells = clients.map((client) => {
      const made = purchases.find((purchase) => purchase.attack === attack && purchase.client === client)
      return made === undefined ? '–' : `${payeesOf(made.plain)} / ${payeesOf(made.guarded)}`
    })
    return row([attack.name, ...cells, saidBy({ refused: attack.guarded, codes: attack.codes })])
  })
  const head = ['attack', ...clients.map(({ title }) => title), 'the guard says']
  return [row(head), row(head.map(() => '---')), ...rows].join('\n')
}

/** Whom a purchase paid. */
function payeesOf({ payments }) {
  if (payments.length === 0) return 'nobody'
  const [{ who, seconds }] = payments
  if (seconds > YEAR_SECONDS) return `${who}, for ${Math.round(seconds / YEAR_SECONDS)} years`
  return payments.length === 1 ? who : `${who}, ${payments.length} times`
}

/** The guard's code and the daemon's. */
function saidBy({ refused, codes = [] }) {
  if (refused === undefined) return ''
  const code = (text) => `\`${text}\``
  return codes.length === 0 ? code(refused) : `${code(refused)}: ${codes.map(code).join(', ')}`
}

function fail(status, message) {
  console.error(message)
  process.exit(status)
}
