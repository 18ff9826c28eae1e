// The purchases of a buyer, one a line (README.md).
import { createInterface } from 'node:readline'

/** Makes the purchases that come on the standard input, and answers each with its end. */
export async function serve(purchase) {
  for await (const line of createInterface({ input: process.stdin })) {
    const end = await purchase(JSON.parse(line)).then(({ status }) => ({ status }), failure)
    process.stdout.write(`${JSON.stringify(end)}\n`)
  }
}

function failure(error) {
  if (error.name === 'GuardError') return { refused: error.code, codes: error.codes }
  return { failed: error.message }
}
