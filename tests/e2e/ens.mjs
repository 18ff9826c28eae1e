// ENS on the chain: the official contracts that npm has, at their mainnet addresses, and the names of a zone in them.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import {
  concat, encodeAbiParameters, encodeDeployData, encodeFunctionData, labelhash, namehash, parseAbi, parseEther, toHex,
} from 'viem'
import { succeeded } from './anvil.mjs'
import { multicall3Bytecode } from './node_modules/viem/_esm/constants/contracts.js'

export const ADDRESSES = {
  registry: '0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e',
  oldRegistry: '0x314159265dD8dbb310642f98f50C066173C1259b',
  registrar: '0x57f1887a8BF19b14fC0dF6Fd9B2acc9Af147eA85',
  universalResolver: '0xeEeEEEeE14D718C2B47D9923Deab1335E144EeEe',
  multicall3: '0xcA11bde05977b3631167028862bE2a173976CA11',
}

const SECONDS_PER_DAY = 86_400
const ROOT = toHex(0, { size: 32 })

const require = createRequire(import.meta.url)
const official = {
  oldRegistry: require('@ensdomains/ens-archived-contracts/abis/ens/ENSRegistry.json'),
  registry: require('@ensdomains/ens-archived-contracts/abis/ens/ENSRegistryWithFallback.json'),
  registrar: require('@ensdomains/ens-archived-contracts/abis/ethregistrar/BaseRegistrarImplementation.json'),
  publicResolver: require('@ensdomains/resolver/build/contracts/PublicResolver.json'),
  offchainResolver: require('@ensdomains/offchain-resolver-contracts/artifacts/contracts/OffchainResolver.sol/OffchainResolver.json'),
}
/** The project's own contracts: npm has no installable release of the Universal Resolver. */
const own = JSON.parse(readFileSync(new URL('../../crates/sandbox/contracts/artifacts.json', import.meta.url), 'utf8'))

const publicResolverAbi = parseAbi([
  'function multicall(bytes[] data) returns (bytes[] results)',
  'function setText(bytes32 node, string key, string value)',
  'function setAddr(bytes32 node, address value)',
  'function setAddr(bytes32 node, uint256 coinType, bytes value)',
])

/** Deploys ENS and resolves to what `addName` needs. `ccip` is the URL template and signer of the off-chain names. */
export async function deployEns(client, ccip) {
  const [deployer] = await client.getAddresses()
  const ens = { client, deployer }
  const install = (address, artifact, args) => runConstructorAt(ens, address, encodeDeployData({ ...artifact, args }))
  const registryArgument = encodeAbiParameters([{ type: 'address' }], [ADDRESSES.registry])

  await install(ADDRESSES.oldRegistry, official.oldRegistry, [])
  await install(ADDRESSES.registry, official.registry, [ADDRESSES.oldRegistry])
  await install(ADDRESSES.registrar, official.registrar, [ADDRESSES.registry, namehash('eth')])
  await runConstructorAt(ens, ADDRESSES.universalResolver, concat([own.creation.UniversalResolver, registryArgument]))
  await runConstructorAt(ens, ADDRESSES.multicall3, multicall3Bytecode)
  ens.publicResolver = await deploy(ens, official.publicResolver, [ADDRESSES.registry])
  ens.offchainResolver = await deploy(ens, official.offchainResolver, [ccip.url, [ccip.signer]])

  await write(ens, deployer, 'registrar', 'addController', [deployer])
  await write(ens, deployer, 'registry', 'setSubnodeOwner', [ROOT, labelhash('eth'), ADDRESSES.registrar])
  return ens
}

/**
 * Registers a name and sets its records. `entry` is
 * `{owner, resolver: "public"|"offchain"|"none"|"parent", addr?, addresses?, text?, days?}`, `addresses` by coin type;
 * a name with `parent` is left to the nearest ancestor's resolver.
 */
export async function addName(ens, name, entry) {
  if (entry.resolver === 'parent') return
  await ens.client.setBalance({ address: entry.owner, value: parseEther('1') })
  await register(ens, name, entry)
  if (entry.resolver === 'none') return
  await write(ens, entry.owner, 'registry', 'setResolver', [namehash(name), ens[`${entry.resolver}Resolver`]])
  if (entry.resolver === 'public') await setRecords(ens, name, entry)
}

/** Sets addresses and texts of a name at the PublicResolver. */
export async function setRecords({ client, publicResolver }, name, { owner, addr, addresses = {}, text = {} }) {
  const node = namehash(name)
  const call = (functionName, args) => encodeFunctionData({ abi: publicResolverAbi, functionName, args })
  const calls = Object.entries(text).map(([key, value]) => call('setText', [node, key, value]))
  if (addr !== undefined) calls.push(call('setAddr', [node, addr]))
  for (const [coin, value] of Object.entries(addresses)) calls.push(call('setAddr', [node, BigInt(coin), value]))
  await send(client, { account: owner, to: publicResolver, data: call('multicall', [calls]) })
}

async function register(ens, name, { owner, days = 3650 }) {
  const [label, ...rest] = name.split('.')
  const parent = rest.join('.')
  if (parent === 'eth') {
    const seconds = Math.max(1, days * SECONDS_PER_DAY)
    return write(ens, ens.deployer, 'registrar', 'register', [BigInt(labelhash(label)), owner, BigInt(seconds)])
  }
  const holder = await ens.client.readContract({
    address: ADDRESSES.registry, abi: official.registry.abi, functionName: 'owner', args: [namehash(parent)],
  })
  return write(ens, holder, 'registry', 'setSubnodeOwner', [namehash(parent), labelhash(label), owner])
}

/** Runs creation code in the account at `address`, which so gets the code and the storage of a deployment there. */
async function runConstructorAt({ client, deployer }, address, creation) {
  await client.setCode({ address, bytecode: creation })
  const { data: runtime } = await client.call({ account: deployer, to: address })
  await send(client, { account: deployer, to: address })
  await client.setCode({ address, bytecode: runtime })
}

async function deploy({ client, deployer }, artifact, args) {
  const receipt = await send(client, { account: deployer, data: encodeDeployData({ ...artifact, args }) })
  return receipt.contractAddress
}

async function write({ client }, account, contract, functionName, args) {
  const data = encodeFunctionData({ abi: official[contract].abi, functionName, args })
  return send(client, { account, to: ADDRESSES[contract], data })
}

async function send(client, transaction) {
  return await succeeded(client, await client.sendTransaction({ gas: 10_000_000n, ...transaction }))
}
