// A whole purchase: resolve, decide and pay with the guard, receive, verify receipt and settlement by what the guard handed
// out, bundle, replay offline.
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { offerOf } from './attacks.mjs'
import { receiptFor } from './receipts.mjs'
import { AGENT, SIGNER, SIGNER_RECORDS, VERB } from './world.mjs'

/**
 * Makes two purchases of what is demanded in `honest`, by `buy` (an offer and a request in, the buyer's answer out).
 * Resolves to what is not as it should be.
 */
export async function buyWhole(world, executable, honest, buy) {
  const what = `whole purchase (${honest.name})`
  const file = (name) => join(world.folder, name)
  const run = (...args) => spawnSync(executable, args, { encoding: 'utf8' })
  const faults = []
  const expect = (step, { status, stdout, stderr }, expected) => {
    if (status !== expected) faults.push(`${what}, ${step}: exit ${status}, expected ${expected}: ${stdout}${stderr}`)
  }

  expect('resolve', run('verify', AGENT, '--config', world.config), 0)
  const serve = (request) => receiptFor(request, SIGNER, SIGNER_RECORDS['cl.sig.kid'])
  const offer = { ...(await offerOf(world, honest, 2)), serve }
  const earlier = await paid(world, offer, buy)
  const bought = await paid(world, offer, buy)
  const kept = {
    'decision.json': bought.decision,
    'request.json': bought.request,
    'receipt.json': bought.receipt,
    'payment.txt': bought.payment,
    'settlement.txt': bought.settlement,
    'earlier.json': earlier.receipt,
    'earlier.txt': earlier.settlement,
  }
  for (const [name, text] of Object.entries(kept)) writeFileSync(file(name), text)
  const verify = (receipt, settlement, ...further) => {
    const about = ['--name', AGENT, '--request', file('request.json'), '--decision', file('decision.json')]
    const payment = ['--payment', file('payment.txt'), '--settlement', file(settlement)]
    return run('receipt', 'verify', file(receipt), ...about, ...payment, '--config', world.config, ...further)
  }
  expect('before its block is final', verify('receipt.json', 'settlement.txt'), 3)
  await world.finalize()
  expect('verify receipt and settlement', verify('receipt.json', 'settlement.txt', '--bundle', file('purchase.json')), 0)
  expect('an earlier transfer of the same amount', verify('receipt.json', 'earlier.txt'), 1)
  expect('the receipt of an earlier request', verify('earlier.json', 'settlement.txt'), 1)
  expect('replay offline', run('bundle', 'verify', file('purchase.json'), '--name', AGENT), 0)
  const { verification } = JSON.parse(readFileSync(file('purchase.json'), 'utf8'))
  const { shown_by: shownBy } = verification.settlement
  if (shownBy !== honest.shownBy) faults.push(`${what}: the settlement is shown by ${shownBy}`)
  return faults
}

/** What was sent and came in a purchase that was paid: the guard hands out decision, payment and settlement. */
async function paid({ sellers }, offer, buy) {
  sellers.sell(offer)
  const request = newRequest()
  const { status, body, paid, failed, refused } = await buy(offer, request)
  if (status !== 200) throw new Error(`nothing was bought: ${status ?? failed ?? refused}`)
  return { request, receipt: body, ...paid, decision: JSON.stringify(paid.decision) }
}

/** A request that nobody has sent before. */
function newRequest() {
  const id = randomUUID()
  const x402 = { verb: VERB, version: '1.0.0', request_id: id }
  return JSON.stringify({ x402, actor: 'did:example:caller', input: { content: `A long text, asked for as ${id}.` } })
}
