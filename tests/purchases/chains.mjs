// Two chains with dollars on them, ENS and Permit2 on the first: anvil, the contracts of tests/e2e, and the sandbox's token.
import { readFileSync } from 'node:fs'
import { encodeAbiParameters, concat, isAddressEqual, maxUint256, parseAbi, parseSignature } from 'viem'
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

/** Where every chain has Permit2, x402's spender of it, and the deployer whose contracts have the same address everywhere. */
const PERMIT2 = '0x000000000022D473030F116dDEE9F6B43aC78BA3'
const PROXY = '0x402085c248EeA27D92E8b30b2C58ed07f9E20001'
const DEPLOYER = '0x4e59b44847b379578588920cA78FbF26c0B4956C'
/** The verifier of smart wallets, which `x402-facilitator-local` wants to find, and asks of no other wallet; it does nothing. */
const VALIDATOR = '0xdAcD51A54883eb67D95FAEb2BBfdC4a9a6BD2a3B'
const STOP = '0x00'
/** With which it was deployed. Other code than the published one would come to lie elsewhere. */
const PERMIT2_SALT = '0x0000000000000000000000000000000000000000d3af2663da51c10215000000'

const artifacts = new URL('../../crates/sandbox/contracts/artifacts.json', import.meta.url)
const { creation } = JSON.parse(readFileSync(artifacts, 'utf8'))
const tokenAbi = parseAbi([
  'function balanceOf(address) view returns (uint256)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function approve(address spender, uint256 value) returns (bool)',
])
const proxyAbi = parseAbi([
  'struct TokenPermissions { address token; uint256 amount; }',
  'struct PermitTransferFrom { TokenPermissions permitted; uint256 nonce; uint256 deadline; }',
  'struct Witness { address to; uint256 validAfter; }',
  'function settle(PermitTransferFrom permit, address owner, Witness witness, bytes signature)',
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
  await deployPermit2(first.client)
  await approvePermit2(tokens.dollar, holder)
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

/** The published Permit2 at its address, and the sandbox's contract in the place of x402's own. */
async function deployPermit2(client) {
  const [account] = await client.getAddresses()
  await mined(client, { account, to: DEPLOYER, data: concat([PERMIT2_SALT, permit2Creation()]) })
  if ((await client.getCode({ address: PERMIT2 })) === undefined) throw new Error('the code of Permit2 is another one')
  const { contractAddress } = await mined(client, { account, data: creation.ExactPermit2Proxy })
  await client.setCode({ address: PROXY, bytecode: await client.getCode({ address: contractAddress }) })
  await client.setCode({ address: VALIDATOR, bytecode: STOP })
}

function permit2Creation() {
  const file = 'node_modules/@uniswap/uniswapx-sdk/dist/esm/src/contracts/factories/Permit2__factory.js'
  const [, code] = /const _bytecode = "(0x[0-9a-f]+)"/.exec(readFileSync(new URL(file, import.meta.url), 'utf8'))
  return code
}

/** What every holder does once, before the first payment by Permit2. */
async function approvePermit2({ client, address }, holder) {
  const call = { address, abi: tokenAbi, functionName: 'approve', args: [PERMIT2, maxUint256] }
  await succeeded(client, await client.writeContract({ ...call, account: holder, gas: 1_000_000n }))
}

/** What an account has of a token, in atomic units. */
export async function balanceOf({ client, address }, account) {
  return await client.readContract({ address, abi: tokenAbi, functionName: 'balanceOf', args: [account] })
}

/** Moves what a payload permits, as a facilitator does. Rejects where a contract refuses it. */
export async function settle({ client, address }, payload) {
  const [account] = await client.getAddresses()
  const call = payload.permit2Authorization === undefined ? byAuthorization(address, payload) : byPermit2(payload)
  return await succeeded(client, await client.writeContract({ ...call, account, gas: 1_000_000n }))
}

/** EIP-3009: the token itself moves it. */
function byAuthorization(address, { authorization, signature }) {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const { r, s, v, yParity } = parseSignature(signature)
  const numbers = [value, validAfter, validBefore].map(BigInt)
  const args = [from, to, ...numbers, nonce, Number(v ?? 27 + yParity), r, s]
  return { address, abi: tokenAbi, functionName: 'transferWithAuthorization', args }
}

/** Permit2: the spender that is signed has it moved. */
function byPermit2({ permit2Authorization: { from, permitted, spender, nonce, deadline, witness }, signature }) {
  if (!isAddressEqual(spender, PROXY)) throw new Error(`${spender} is not x402's spender`)
  const permit = {
    permitted: { token: permitted.token, amount: BigInt(permitted.amount) },
    nonce: BigInt(nonce),
    deadline: BigInt(deadline),
  }
  const args = [permit, from, { to: witness.to, validAfter: BigInt(witness.validAfter) }, signature]
  return { address: PROXY, abi: proxyAbi, functionName: 'settle', args }
}

async function mined(client, transaction) {
  return await succeeded(client, await client.sendTransaction({ gas: 10_000_000n, ...transaction }))
}
