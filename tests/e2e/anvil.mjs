// The chain: anvil on a free loopback port, a transaction a block. Its clock starts a day ago, so that what is set up then
// can be old by now, and `finalize` brings it to the present.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { TransactionReceiptNotFoundError, createTestClient, http, publicActions, walletActions } from 'viem'

/** How far behind the latest block anvil's `finalized` block is. */
const FINALITY_DEPTH = 64
/** How far back the clock starts. */
const CLOCK_BEHIND_SECONDS = 86_400
/** Between two looks for a receipt: a transaction is mined at once. */
const RECEIPT_PAUSE_MS = 5
/** Longest wait for one: a minute, even where other programs take the machine. */
const RECEIPT_LOOKS = 12_000

const executable = fileURLToPath(new URL('node_modules/.bin/anvil', import.meta.url))

/** Starts anvil, which lives as long as this process. Resolves to its URL and a viem client for it. */
export async function startAnvil(chainId) {
  const timestamp = now() - CLOCK_BEHIND_SECONDS
  const child = spawn(
    executable,
    ['--host', '127.0.0.1', '--port', '0', '--chain-id', `${chainId}`, '--timestamp', `${timestamp}`, '--auto-impersonate'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  child.on('exit', (code) => {
    console.error(`anvil ended with code ${code}`)
    process.exit(1)
  })
  process.on('exit', () => child.kill())
  process.on('SIGTERM', () => process.exit(1))
  const url = `http://${await listeningAddress(child.stdout)}`
  const client = createTestClient({ mode: 'anvil', chain: null, transport: http(url), pollingInterval: 5 })
    .extend(publicActions)
    .extend(walletActions)
  return { url, client }
}

/** Mines until a block of the present is the finalized one. */
export async function finalize(client) {
  await client.setNextBlockTimestamp({ timestamp: BigInt(now()) })
  await client.mine({ blocks: 1 + FINALITY_DEPTH })
}

/** The receipt of a transaction, which must have succeeded. viem's own wait looks again only where a new block comes. */
export async function succeeded(client, hash) {
  for (let looks = 0; looks < RECEIPT_LOOKS; looks += 1) {
    const receipt = await client.getTransactionReceipt({ hash }).catch(whenMissing)
    if (receipt?.status === 'reverted') throw new Error(`transaction ${hash} reverted`)
    if (receipt !== undefined) return receipt
    await setTimeout(RECEIPT_PAUSE_MS)
  }
  throw new Error(`transaction ${hash} is not mined`)
}

function whenMissing(error) {
  if (!(error instanceof TransactionReceiptNotFoundError)) throw error
}

function now() {
  return Math.floor(Date.now() / 1000)
}

async function listeningAddress(stdout) {
  const lines = createInterface({ input: stdout })
  return new Promise((resolve) => {
    lines.on('line', (line) => {
      const match = /^Listening on (\S+)/.exec(line)
      if (match !== null) resolve(match[1])
    })
  })
}
