// The sellers: the agent's and a thief's, each on a host of its own. What they demand is set for each purchase
// (attacks.mjs); what is paid they settle on the chain, as their facilitator would.
import { once } from 'node:events'
import { createServer, request as forward } from 'node:http'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { settle } from './chains.mjs'

/** Two hosts, so that a redirect from one to the other is a redirect to another host. */
const HOSTS = { agent: '127.0.0.1', thief: '127.0.0.2' }
export const PATH = '/summarize'

const PAYMENT_HEADERS = ['payment-signature', 'x-payment']

/**
 * Starts both. `sell(offer)` sets what they demand from then on, and by `serve` what they answer to a paid request; `settled`
 * holds what was settled since.
 */
export async function startSellers() {
  const sellers = { offer: undefined, settled: [], sell }
  for (const [who, host] of Object.entries(HOSTS)) {
    const server = createServer((request, response) => {
      answer(sellers, who, request, response).catch((error) => reply(response, 500, {}, error.message))
    })
    const port = await new Promise((resolve) => server.listen(0, host, () => resolve(server.address().port)))
    sellers[who] = `http://${host}:${port}${PATH}`
  }
  return sellers
}

function sell(offer) {
  this.offer = offer
  this.settled = []
}

async function answer(sellers, who, request, response) {
  const { offer } = sellers
  // No registration names a seller.
  if (request.url.startsWith('/.well-known/')) return reply(response, 404, {}, '')
  if (offer.shop !== undefined) return await pass(request, response, offer.shop)
  const asked = await text(request)
  if (offer.redirects && who === 'agent') return reply(response, 307, { location: sellers.thief }, '')
  const payload = payloadOf(request.headers)
  if (payload === undefined) return demand(response, offer)
  const { transactionHash } = await settle(offer.token, payload)
  sellers.settled.push(paymentOf(payload, offer))
  const settlement = settlementOf(offer, transactionHash)
  // Whoever insists demands the money again.
  if (offer.insists) return demand(response, offer)
  if (offer.moves) return reply(response, 307, { ...settlement, location: sellers.agent }, '')
  return reply(response, 200, settlement, offer.serve?.(asked) ?? '{"summary":"short"}')
}

/** What was signed: a payment of x402, or a credential of MPP. */
function payloadOf(headers) {
  const payment = PAYMENT_HEADERS.map((name) => headers[name]).find((value) => value !== undefined)
  if (payment !== undefined) return JSON.parse(Buffer.from(payment, 'base64').toString()).payload
  const [, credential] = /^Payment (.+)$/.exec(headers.authorization) ?? []
  if (credential === undefined) return undefined
  const { signature, ...authorization } = JSON.parse(Buffer.from(credential, 'base64url').toString()).payload
  return { authorization, signature }
}

/** Asks the shop behind this host, as a proxy does: it sees the host that was asked. */
async function pass(request, response, shop) {
  const { method, url: path, headers } = request
  const asking = forward(new URL(path, shop), { method, headers })
  const [[answered]] = await Promise.all([once(asking, 'response'), pipeline(request, asking)])
  response.writeHead(answered.statusCode, answered.rawHeaders)
  await pipeline(answered, response)
}

/** Whom a payload pays, how much, and for how long it was good. */
function paymentOf(payload, { payees }) {
  const { to, value, end } = payload.permit2Authorization ? permitted(payload) : authorized(payload)
  const who = Object.keys(payees).find((name) => payees[name].toLowerCase() === to.toLowerCase())
  return { who, value: BigInt(value), seconds: Number(end) - Math.floor(Date.now() / 1000) }
}

const authorized = ({ authorization: { to, value, validBefore } }) => ({ to, value, end: validBefore })
const permitted = ({ permit2Authorization: { witness, permitted, deadline } }) => {
  return { to: witness.to, value: permitted.amount, end: deadline }
}

function demand(response, { header, body, challenge }) {
  const terms = header === undefined ? {} : { 'payment-required': encoded(header) }
  const other = challenge === undefined ? {} : { 'www-authenticate': challenge }
  reply(response, 402, { ...terms, ...other }, JSON.stringify(body ?? {}))
}

function settlementOf({ version, token: { chain } }, transaction) {
  const name = version === 1 ? 'x-payment-response' : 'payment-response'
  return { [name]: encoded({ success: true, transaction, network: version === 1 ? chain.v1 : chain.network }) }
}

function encoded(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

function reply(response, status, headers, body) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
}
