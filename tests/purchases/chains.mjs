// Two chains with dollars on them, and ENS on the first: anvil, the contracts of tests/e2e, and the sandbox's token.
import { readFileSync } from 'node:fs'
import { encodeAbiParameters, concat, parseAbi, parseSignature } from 'viem'
import { finalize, startAnvil, succeeded } from '../e2e/anvil.mjs'
import { SIGNER } from '../e2e/ccip.mjs'
import { addName, deployEns } from '../e2e/ens.mjs'

/** The chain of the purchases and of ENS. Version 1 of x402 has a name for it, which anvil's own chain has not. */
export const CHAIN = { id: 84532, network: 'eip155:84532', v1: 'base-sepolia' }
/** The chain on which nobody permitted anything. */
export const OTHER_CHAIN = { id: 8453, network: 'eip155:8453', v1: 'base' }

/** Blocks after which anvil calls one final, and one more. */
const FINAL_AFTER = 65

/** EIP-712 domain of the token and its decimals, as Dollar.sol has them. */
export const DOLLAR = { name: 'Sandbox Dollar', version: '1', decimals: 6, symbol: 'SBD' }

const artifacts = new URL('../../crates/sandbox/contracts/artifacts.json', import.meta.url)
const { creation } = JSON.parse(readFileSync(artifacts, 'utf8'))
const tokenAbi = parseAbi([
  'function balanceOf(address) view returns (uint256)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
])

/**
 * Starts both chains. `holder` has all of three tokens: `dollar` and `fake` on the first chain, which say the same of
 * themselves, and `elsewhere` on the other. Resolves to {rpc, tokens, register, finalize}.
 */
export async function startChains(holder) {
  const [first, other] = await Promise.all([startAnvil(CHAIN.id), startAnvil(OTHER_CHAIN.id)])
  await finalize(other.client)
  // None of the names is off chain, so nobody asks this gateway.
  const ens = await deployEns(first.client, { url: 'https://ccip.example/{sender}/{data}.json', signer: SIGNER })
  const tokens = {
    dollar: await deployToken(first.client, CHAIN, holder),
    fake: await deployToken(first.client, CHAIN, holder),
    elsewhere: await deployToken(other.client, OTHER_CHAIN, holder),
  }
  const register = async (zone) => {
    for (const [name, entry] of Object.entries(zone)) await addName(ens, name, entry)
    await finalize(first.client)
  }
  /** Makes everything so far final. The clock of the blocks is ahead already. */
  const settleDown = async () => await first.client.mine({ blocks: FINAL_AFTER })
  return { rpc: first.url, tokens, register, finalize: settleDown }
}

async function deployToken(client, chain, holder) {
  const [deployer] = await client.getAddresses()
  const data = concat([creation.Dollar, encodeAbiParameters([{ type: 'address' }], [holder])])
  const { contractAddress } = await mined(client, { account: deployer, data })
  return { client, chain, address: contractAddress }
}

/** What an account has of a token, in atomic units. */
export async function balanceOf({ client, address }, account) {
  return await client.readContract({ address, abi: tokenAbi, functionName: 'balanceOf', args: [account] })
}

/** Moves what an EIP-3009 authorisation permits, as a facilitator does. Rejects where the token refuses it. */
export async function settle({ client, address }, { authorization, signature }) {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const { r, s, v, yParity } = parseSignature(signature)
  const numbers = [value, validAfter, validBefore].map(BigInt)
  const args = [from, to, ...numbers, nonce, Number(v ?? 27 + yParity), r, s]
  const [facilitator] = await client.getAddresses()
  const call = { account: facilitator, address, abi: tokenAbi, functionName: 'transferWithAuthorization', args }
  const hash = await client.writeContract({ ...call, gas: 1_000_000n })
  return await succeeded(client, hash)
}

async function mined(client, transaction) {
  return await succeeded(client, await client.sendTransaction({ gas: 10_000_000n, ...transaction }))
}
