// Sellers of the published packages, which stand behind the agent's URL: what they demand, and how they settle, is theirs.
import { createServer } from 'node:http'
import express from 'express'
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme as Settling } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme as Selling } from '@x402/evm/exact/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
import { listen } from '../e2e/lifecycle.mjs'
import { succeeded } from '../e2e/anvil.mjs'
import { PRICE } from './attacks.mjs'
import { Service } from './service.mjs'
import { DOLLAR } from './chains.mjs'
import { PATH } from './sellers.mjs'

/** Starts `@x402/express`, with a facilitator of `@x402/evm` in this process. Resolves to its URL. */
export async function startExpress(token, payTo) {
  const { network } = token.chain
  const { name, version } = DOLLAR
  const facilitator = new x402Facilitator().register(network, new Settling(await signerOf(token.client)))
  const server = new x402ResourceServer(inProcess(facilitator)).register(network, new Selling())
  const price = { asset: token.address, amount: `${PRICE}`, extra: { name, version } }
  const accepts = { scheme: 'exact', price, network, payTo, maxTimeoutSeconds: 60 }
  const shop = express()
  shop.use(paymentMiddleware({ [PATH]: { accepts, description: 'A summary' } }, server))
  shop.all(PATH, (_, response) => response.json({ summary: 'short' }))
  return `http://127.0.0.1:${await listen(createServer(shop))}`
}

/**
 * Starts `x402-axum`, with `x402-facilitator-local` in its process (axum/). `sale` has `rpc`, `payTo`, the `url` that buyers
 * ask, and the `key` of an account that nobody else uses: the facilitator counts its transactions. Resolves to its own URL.
 */
export async function startAxum(executable, token, sale) {
  const shop = new Service(executable, [])
  const { name, version } = DOLLAR
  const of = { name, version, chain: token.chain.id, asset: token.address, amount: `${PRICE}` }
  return (await shop.ask({ ...of, ...sale })).url
}

/** What the package asks over HTTP, asked of a facilitator in this process. */
function inProcess(facilitator) {
  return {
    verify: async (payload, requirements) => await facilitator.verify(payload, requirements),
    settle: async (payload, requirements) => await facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported(),
  }
}

/** Who sends its transactions: an account of the chain's own. */
async function signerOf(client) {
  const [address] = await client.getAddresses()
  const write = (send) => async (call) => await send({ ...call, account: address, gas: 1_000_000n })
  return toFacilitatorEvmSigner({
    address,
    readContract: client.readContract,
    verifyTypedData: client.verifyTypedData,
    getCode: client.getCode,
    writeContract: write(client.writeContract),
    sendTransaction: write(client.sendTransaction),
    waitForTransactionReceipt: async ({ hash }) => await succeeded(client, hash),
  })
}
