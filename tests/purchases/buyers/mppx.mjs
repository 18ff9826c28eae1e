// A client that speaks MPP and x402, mppx, above the guard in TypeScript.
import { guardFetch } from 'clresolve-guard'
import { Fetch } from 'mppx/client'
import { evm } from 'mppx/evm/client'
import { privateKeyToAccount } from 'viem/accounts'
import { DOLLAR } from '../chains.mjs'
import { requestOf, serve } from './lines.mjs'

const MAX_AMOUNT = '50000'

await serve(async (question, onPaid) => {
  const { url, key, guard, assets } = question
  const below = guard === null ? fetch : guardFetch(fetch, { ...guard, onPaid })
  const { decimals, ...authorization } = DOLLAR
  const charge = evm.charge({
    account: privateKeyToAccount(key),
    networks: assets.map(({ network }) => Number(network.split(':')[1])),
    currencies: assets.map(({ asset }) => asset),
    maxAtomicAmount: MAX_AMOUNT,
    decimals,
    authorization,
  })
  return await Fetch.from({ fetch: below, methods: [charge] })(url, requestOf(question))
})
