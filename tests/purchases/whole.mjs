// A whole purchase: resolve, decide, pay, receive, verify receipt and settlement, bundle, replay offline. The agent's
// receipt is one of the sandbox's, whose key everybody has; its signer is published on the chain of the purchases.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ATTACKS, offerOf } from './attacks.mjs'
import { AGENT, VERB } from './world.mjs'

const RECEIPT = 'agent-sdk.json'
const REQUEST = 'request.json'

/** Makes two purchases by `buy` (an offer in, the buyer's answer out). Resolves to what is not as it should be. */
export async function buyWhole(world, executable, buy) {
  const file = (name) => join(world.folder, name)
  const save = (name, text) => writeFileSync(file(name), text)
  const run = (...args) => spawnSync(executable, args, { encoding: 'utf8' })
  const faults = []
  const expect = (what, { status, stdout, stderr }, expected) => {
    if (status !== expected) faults.push(`whole purchase, ${what}: exit ${status}, expected ${expected}: ${stdout}${stderr}`)
  }
  run('sandbox', '--receipts', world.folder)
  const receipt = readFileSync(file(RECEIPT), 'utf8')

  expect('resolve', run('verify', AGENT, '--config', world.config), 0)
  const offer = { ...(await offerOf(world, ATTACKS[0], 2)), receipt }
  world.sellers.sell(offer)
  const decision = await decide(world)
  if (decision.abort !== false) faults.push(`whole purchase, decide: ${decision.reason}`)
  save('decision.json', JSON.stringify(decision))

  const earlier = await paid(world, offer, buy)
  const { payment, settlement } = await paid(world, offer, buy)
  save('payment.txt', payment)
  save('settlement.txt', settlement)
  save('earlier.txt', earlier.settlement)
  const verify = (reply, ...further) => {
    const kept = ['--request', file(REQUEST), '--decision', file('decision.json'), '--payment', file('payment.txt')]
    const about = ['receipt', 'verify', file(RECEIPT), '--name', AGENT, '--config', world.config]
    return run(...about, ...kept, '--settlement', file(reply), ...further)
  }
  expect('before its block is final', verify('settlement.txt'), 3)
  await world.finalize()
  expect('verify receipt and settlement', verify('settlement.txt', '--bundle', file('purchase.json')), 0)
  expect('an earlier transfer of the same amount', verify('earlier.txt'), 1)
  expect('replay offline', run('bundle', 'verify', file('purchase.json'), '--name', AGENT), 0)
  const { verification } = JSON.parse(readFileSync(file('purchase.json'), 'utf8'))
  const { shown_by: shownBy } = verification.settlement
  if (shownBy !== 'proven') faults.push(`whole purchase: the settlement is shown by ${shownBy}`)
  return faults
}

/** The daemon's decision about what the seller demands now. */
async function decide({ daemon, sellers }) {
  const reply = await fetch(sellers.agent)
  const headers = Object.fromEntries(reply.headers)
  const response = { status: reply.status, url: reply.url, headers, body: await reply.text() }
  const answer = await fetch(`${daemon.url}/v1/decisions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: AGENT, verb: VERB, response }),
  })
  return await answer.json()
}

/** The headers of a purchase that was paid. */
async function paid({ sellers }, offer, buy) {
  sellers.sell(offer)
  const { status, failed, refused } = await buy(offer)
  if (status !== 200) throw new Error(`nothing was bought: ${status ?? failed ?? refused}`)
  return sellers.kept
}
