// The attacks: what the sellers demand, what happens in the buyer's program, what the plain client pays and how the
// guard refuses.
import { randomUUID } from 'node:crypto'
import { OFFER_RECEIPT, createOfferEIP712 } from '@x402/extensions/offer-receipt'
import { DOLLAR } from './chains.mjs'

/** What a summary costs, in atomic units: 0.01. */
export const PRICE = 10_000n
const LOWER_PRICE = 9_000n

const HONEST_SECONDS = 60
const TEN_YEARS_SECONDS = 315_360_000

/** Names without an Agent-Card (world.mjs), as sellers of the sandbox have them: the agent's, and the thief's own. */
export const SELLER_NAME = 'honest-name.eth'
export const THIEF_NAME = 'thief-perfect.eth'

const thief = { payTo: 'thief' }
/** Guards for any seller: the caller knows its name, or nobody does. */
const named = { agent: 'any', name: SELLER_NAME }
const unnamed = { agent: 'any' }
/** What an entry says beside the asset's domain where Permit2 moves it. */
const permit2 = { assetTransferMethod: 'permit2' }

/**
 * `version` is that of x402 which has it; both do where there is none. A `shop` (shops.mjs) demands
 * what it wants; else `entries` change the honest entry, and `challenge` changes the one that is demanded by MPP in the
 * same reply. `whom` is whom the guard pays, and `at` whose URL is asked: the agent unless given. `trick` is what the
 * program around the client does (README.md). `plain` is whom the plain client pays; `guarded` is how the guard refuses,
 * with at least these `codes` of the daemon; `leaves` is whom it lets be paid all the same, and `status` what the seller
 * answers then, 200 unless given; `shownBy` says how the settlement of an honest offer is known.
 */
export const ATTACKS = [
  { id: 'none', name: 'none', entries: [{}], plain: ['agent'], leaves: ['agent'], shownBy: 'proven' },
  {
    id: 'permit2', name: 'none, by Permit2', version: 2, entries: [{ permit2 }],
    plain: ['agent'], leaves: ['agent'], shownBy: 'reported',
  },
  {
    id: 'express', name: 'none, from `@x402/express` 2.27.0', version: 2, shop: 'express', entries: [{}],
    plain: ['agent'], leaves: ['agent'],
  },
  {
    id: 'axum', name: 'none, from `x402-axum` 2.0.2', version: 2, shop: 'axum', entries: [{}],
    plain: ['agent'], leaves: ['agent'],
  },
  {
    id: 'payee', name: 'other `payTo`', entries: [thief],
    plain: ['thief'], guarded: 'denied', codes: ['payee-mismatch'],
  },
  {
    id: 'second', name: 'second entry poisoned, and chosen', trick: 'cheapest',
    entries: [{}, { ...thief, amount: LOWER_PRICE }],
    plain: ['thief'], guarded: 'payment-denied', codes: ['payment-signature-mismatch'],
  },
  {
    id: 'redirect', name: 'cross-host redirect', redirects: true, entries: [thief],
    plain: ['thief'], guarded: 'redirected', codes: [],
  },
  {
    id: 'moves', name: 'paid, then redirected to itself', moves: true, entries: [{}],
    plain: ['agent'], leaves: ['agent'], status: 307,
  },
  {
    id: 'header', name: 'header against body', contradicts: true, entries: [thief],
    plain: ['thief'], guarded: 'denied', codes: ['payment-terms-ambiguous'],
  },
  {
    id: 'hook', name: 'hook that changes `payTo`', trick: 'hook', entries: [{}],
    plain: ['thief'], guarded: 'payment-denied', codes: ['payment-signature-mismatch'],
  },
  {
    id: 'permit2-hook', name: 'hook that changes `payTo`, by Permit2', version: 2, trick: 'hook', entries: [{ permit2 }],
    plain: ['thief'], guarded: 'payment-denied', codes: ['payment-signature-mismatch'],
  },
  {
    id: 'permit2-name', name: 'another dollar\'s name, by Permit2', version: 2,
    entries: [{ permit2: { assetTransferMethod: 'permit2', name: 'USD Coin' } }],
    plain: ['agent'], guarded: 'denied', codes: ['payment-asset-unlisted'],
  },
  {
    id: 'timeout', name: 'ten-year timeout', entries: [{ maxTimeoutSeconds: TEN_YEARS_SECONDS }],
    plain: ['agent'], guarded: 'denied', codes: ['payment-timeout-excessive'],
  },
  {
    id: 'fake', name: 'fake dollar of the same name', token: 'fake', entries: [{}],
    plain: ['agent'], guarded: 'denied', codes: ['payment-asset-unlisted'],
  },
  {
    id: 'chain', name: 'wrong chain', token: 'elsewhere', entries: [{}],
    plain: ['agent'], guarded: 'denied', codes: ['payment-network-mismatch'],
  },
  {
    id: 'offer', name: "thief's own offer", offers: true, entries: [thief],
    plain: ['thief'], guarded: 'denied', codes: ['payee-mismatch'],
  },
  {
    id: 'other-thief', name: "thief's challenge of another protocol", challenge: thief, entries: [{}],
    plain: ['agent'], leaves: ['agent'],
  },
  {
    id: 'other-agent', name: "thief's terms beside another protocol's challenge", challenge: {}, entries: [thief],
    plain: ['thief'], guarded: 'denied', codes: ['payee-mismatch'],
  },
  {
    id: 'twice', name: 'two signed headers for one decision', trick: 'twice', insists: true, entries: [{}],
    plain: ['agent', 'agent'], guarded: 'no-decision', codes: [], leaves: ['agent'],
  },
  {
    id: 'kill', name: 'daemon killed between check and signature', trick: 'kill', entries: [{}],
    plain: ['agent'], guarded: 'unavailable', codes: [],
  },
  {
    id: 'any', name: 'none, by a seller without a card', whom: named, entries: [{}],
    plain: ['agent'], leaves: ['agent'],
  },
  {
    id: 'any-payee', name: 'other `payTo`, by a seller without a card', whom: named, entries: [thief],
    plain: ['thief'], guarded: 'denied', codes: ['payee-mismatch'],
  },
  {
    id: 'any-thief', name: 'thief with its own valid name', whom: unnamed, at: 'thief',
    entries: [{ ...thief, ens: THIEF_NAME }],
    plain: ['thief'], guarded: 'denied', codes: ['identity-claimed'],
  },
  {
    id: 'any-changed', name: 'changed payee of an unnamed seller', whom: unnamed, entries: [thief],
    plain: ['thief'], guarded: 'denied', codes: ['payee-unproven'],
  },
  {
    id: 'any-redirect', name: 'cross-host redirect, by a seller without a card', whom: named, redirects: true,
    entries: [thief],
    plain: ['thief'], guarded: 'redirected', codes: [],
  },
]

/** What honest sellers demand. */
export const HONEST = ATTACKS.filter(({ shownBy }) => shownBy !== undefined)

/** What the sellers of `world` demand in an attack from a client of this version of x402. */
export async function offerOf(world, attack, version) {
  const token = world.tokens[attack.token ?? 'dollar']
  const url = attack.redirects ? world.sellers.thief : world.sellers[attack.at ?? 'agent']
  const entries = attack.entries.map((change) => entryOf(world, token, change))
  const extensions = attack.offers ? await signedOffers(url, entries[0], world.thief) : undefined
  const poisoned = terms[version](entries, token, url, extensions)
  const other = attack.contradicts ? terms[otherOf(version)]([entryOf(world, token, {})], token, url) : {}
  const payees = { agent: world.agent.address, thief: world.thief.address }
  const { redirects, moves, insists } = attack
  const shop = world.shops[attack.shop]
  const challenge = attack.challenge && challengeOf(entryOf(world, token, attack.challenge), token)
  return { version, token, payees, redirects, moves, insists, shop, challenge, ...other, ...poisoned }
}

/** An entry as MPP demands it: a challenge of the auth scheme Payment. */
function challengeOf({ amount, asset, payTo, maxTimeoutSeconds }, { chain }) {
  const methodDetails = { chainId: chain.id, credentialTypes: ['authorization'], decimals: DOLLAR.decimals }
  const request = { amount, currency: asset, recipient: payTo, methodDetails }
  const parameters = {
    id: randomUUID(),
    realm: 'seller',
    method: 'evm',
    intent: 'charge',
    request: Buffer.from(JSON.stringify(request)).toString('base64url'),
    expires: new Date(Date.now() + maxTimeoutSeconds * 1000).toISOString(),
  }
  return `Payment ${Object.entries(parameters).map(([name, value]) => `${name}="${value}"`).join(', ')}`
}

function entryOf(world, token, { payTo = 'agent', amount = PRICE, maxTimeoutSeconds = HONEST_SECONDS, permit2, ens }) {
  const { name, version } = DOLLAR
  return {
    scheme: 'exact',
    network: token.chain.network,
    amount: `${amount}`,
    asset: token.address,
    payTo: world[payTo].address,
    maxTimeoutSeconds,
    extra: { name, version, ...permit2, ...(ens && { ens }) },
  }
}

const otherOf = (version) => 3 - version

/** Terms as version 1 writes them, in the body, and as version 2 does, in the header. */
const terms = {
  1: (entries, token, url, extensions) => {
    const of1 = { network: token.chain.v1, resource: url, description: '', mimeType: 'application/json' }
    const accepts = entries.map(({ amount, ...rest }) => ({ ...rest, ...of1, maxAmountRequired: amount }))
    return { body: { x402Version: 1, error: 'payment required', accepts, extensions } }
  },
  2: (accepts, _token, url, extensions) => {
    return { header: { x402Version: 2, error: 'payment required', resource: { url }, accepts, extensions } }
  },
}

/** A signed offer for an entry, by an account that no name publishes. */
async function signedOffers(url, entry, account) {
  const input = { acceptIndex: 0, ...entry, offerValiditySeconds: HONEST_SECONDS }
  const offer = await createOfferEIP712(url, input, (data) => account.signTypedData(data))
  return { [OFFER_RECEIPT]: { info: { offers: [offer] }, schema: {} } }
}
