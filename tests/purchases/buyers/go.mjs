// The TypeScript client of x402 version 2 above the guard in Go, which sends in a process of its own (guard.go).
import { fileURLToPath } from 'node:url'
import { Service } from '../service.mjs'
import { buyAbove } from './v2.mjs'

/** The module of the guard, in which the program is compiled. */
const MODULE = fileURLToPath(new URL('../../../clients/go', import.meta.url))

const sends = new Service('go', ['run', fileURLToPath(new URL('guard.go', import.meta.url))], { cwd: MODULE })
await buyAbove(guardFetch)
await sends.end()

/** A `fetch` that sends through a new guard. */
function guardFetch(_fetch, { onPaid, ...options }) {
  const made = sends.ask({ guard: options })
  return async (input, init) => {
    await made
    const request = new Request(input, init)
    const { method, url, headers } = request
    const answer = await sends.ask({ method, url, headers: Object.fromEntries(headers), body: await request.text() })
    if (answer.paid !== undefined) onPaid(answer.paid)
    return responseOf(answer)
  }
}

function responseOf({ status, headers, body, refused, codes, failed }) {
  if (failed !== undefined) throw new TypeError(failed)
  if (refused !== undefined) throw Object.assign(new Error(refused), { name: 'GuardError', code: refused, codes })
  return new Response(body, { status, headers })
}
