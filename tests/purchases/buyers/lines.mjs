// The purchases of a buyer, one a line (README.md).
import { createInterface } from 'node:readline'

/**
 * Makes the purchases that come on the standard input, and answers each with its end. `purchase` takes the question, and the
 * guard's `onPaid`.
 */
export async function serve(purchase) {
  for await (const line of createInterface({ input: process.stdin })) {
    let paid
    const keep = (last) => {
      paid = last
    }
    const end = await purchase(JSON.parse(line), keep).then(outcome, failure)
    process.stdout.write(`${JSON.stringify({ ...end, paid })}\n`)
  }
}

async function outcome(response) {
  return { status: response.status, body: await response.text() }
}

/** What a client fetches with: the request with the question's body, where it has one. */
export function requestOf({ body }) {
  if (body === null) return {}
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body }
}

function failure(error) {
  if (error.name === 'GuardError') return { refused: error.code, codes: error.codes }
  return { failed: error.message }
}
