// The TypeScript client of x402 version 2: @x402/fetch.
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { guardFetch } from 'clresolve-guard'
import { privateKeyToAccount } from 'viem/accounts'
import { requestOf, serve } from './lines.mjs'

const byAmount = (a, b) => Number(a.amount) - Number(b.amount)
const cheapest = (_version, accepts) => accepts.toSorted(byAmount)[0]

const TRICKS = {
  hook: (client, { thief }) =>
    client.onBeforePaymentCreation(async ({ selectedRequirements }) => {
      selectedRequirements.payTo = thief
    }),
  kill: (client, { kill }) => client.onBeforePaymentCreation(async () => void (await fetch(kill))),
  twice: (client) => client.onPaymentResponse(async () => ({ recovered: true })),
}

await serve(async (question) => {
  const { url, key, guard, trick, assets } = question
  const client = new x402Client(trick === 'cheapest' ? cheapest : undefined)
    .register('eip155:*', new ExactEvmScheme(privateKeyToAccount(key)))
    .setSpendControls({ allowedAssets: assets })
  TRICKS[trick]?.(client, question)
  return await wrapFetchWithPayment(guard === null ? fetch : guardFetch(fetch, guard), client)(url, requestOf(question))
})
