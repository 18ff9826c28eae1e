// The TypeScript client of x402 version 2, @x402/fetch, above a guard.
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
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

/** Makes the purchases that come on the standard input. `guardFetch` makes a guard, as that of clresolve-guard does. */
export async function buyAbove(guardFetch) {
  await serve(async (question, onPaid) => {
    const { url, key, guard, trick, assets } = question
    const client = new x402Client(trick === 'cheapest' ? cheapest : undefined)
      .register('eip155:*', new ExactEvmScheme(privateKeyToAccount(key)))
      .setSpendControls({ allowedAssets: assets })
    TRICKS[trick]?.(client, question)
    const below = guard === null ? fetch : guardFetch(fetch, { ...guard, onPaid })
    return await wrapFetchWithPayment(below, client)(url, requestOf(question))
  })
}
