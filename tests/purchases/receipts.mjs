// The agent's receipts: those that the agent SDK makes (family B1), for the request that it was sent. They
// are signed with the sandbox's key, which everybody has; the chain of the purchases publishes it.
import { createHash, createPrivateKey, sign } from 'node:crypto'

/** RFC 8410: what stands before the 32 bytes of an Ed25519 key in PKCS #8. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
const KEY = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, Buffer.alloc(32, 7)]), format: 'der', type: 'pkcs8' })

/** A receipt of `signer`, whose key has the id `kid`, for the text of a request that was served just now. */
export function receiptFor(request, signer, kid) {
  const { x402: { verb }, input } = JSON.parse(request)
  const now = new Date().toISOString()
  const execution = { status: 'ok', started_at: now, completed_at: now }
  const signed = { signer, verb, ts: now, input, output: { summary: 'A short text.' }, execution }
  const hash = createHash('sha256').update(JSON.stringify(sorted(signed))).digest('hex')
  const proof = { canonicalization: 'json.sorted_keys.v1', hash_sha256: hash }
  const signature = { alg: 'ed25519', kid, sig: sign(null, Buffer.from(hash), KEY).toString('base64') }
  return JSON.stringify({ ...signed, metadata: { proof }, signature })
}

/** The same with the members of each object in order. */
function sorted(value) {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
}
