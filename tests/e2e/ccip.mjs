// The CCIP-Read gateway (EIP-3668) behind the OffchainResolver: looks names up in the zone and signs what it says.
import { createServer } from 'node:https'
import {
  concat, decodeFunctionData, encodeAbiParameters, encodeFunctionResult, keccak256, namehash, parseAbi, toHex, zeroAddress,
} from 'viem'
import { privateKeyToAccount, sign } from 'viem/accounts'

/** anvil's second development key, known to everybody. */
const PRIVATE_KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'
const VALID_SECONDS = 3600

const serviceAbi = parseAbi(['function resolve(bytes name, bytes data) view returns (bytes, uint64, bytes)'])
const recordsAbi = parseAbi([
  'function text(bytes32 node, string key) view returns (string)',
  'function addr(bytes32 node) view returns (address)',
])

export const SIGNER = privateKeyToAccount(PRIVATE_KEY).address

/** An HTTPS server for `GET /{sender}/{data}.json`. */
export function createGateway(zone, tls) {
  const entries = new Map(Object.entries(zone).map(([name, entry]) => [namehash(name), entry]))
  return createServer(tls, async (request, response) => {
    try {
      const [, sender, data] = /^\/(0x[0-9a-f]{40})\/(0x[0-9a-f]+)\.json$/i.exec(request.url)
      const body = JSON.stringify({ data: await signedAnswer(entries, sender, data) })
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    } catch {
      response.writeHead(400).end()
    }
  })
}

async function signedAnswer(entries, sender, request) {
  const [, call] = decodeFunctionData({ abi: serviceAbi, data: request }).args
  const result = lookUp(entries, call)
  const expires = BigInt(Math.floor(Date.now() / 1000) + VALID_SECONDS)
  const hash = keccak256(concat(['0x1900', sender, toHex(expires, { size: 8 }), keccak256(request), keccak256(result)]))
  const signature = await sign({ hash, privateKey: PRIVATE_KEY, to: 'hex' })
  return encodeAbiParameters([{ type: 'bytes' }, { type: 'uint64' }, { type: 'bytes' }], [result, expires, signature])
}

function lookUp(entries, data) {
  const { functionName, args: [node, key] } = decodeFunctionData({ abi: recordsAbi, data })
  const { text = {}, addr = zeroAddress } = entries.get(node) ?? {}
  return encodeFunctionResult({ abi: recordsAbi, functionName, result: functionName === 'text' ? text[key] ?? '' : addr })
}
