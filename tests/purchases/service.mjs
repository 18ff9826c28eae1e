// Processes that this one starts: the scripts of tests/e2e, the daemon and the buyers.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** What is not ready, or has not answered, by then never will. */
const LIMIT_SECONDS = 60

/** A process with lines of JSON on its standard input and output. */
export class Service {
  #name
  #child
  #lines

  constructor(command, args, options = {}) {
    this.#name = [command, ...args].join(' ')
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], ...options })
    this.#child.on('error', () => {})
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
  }

  /** The next line that it prints, as JSON. */
  async next() {
    const { value, done } = await within(this.#lines.next(), this.#name)
    if (done) throw new Error(`${this.#name} ended`)
    return JSON.parse(value)
  }

  /** Gives it a line and resolves to its answer. */
  async ask(question) {
    this.#child.stdin.write(`${JSON.stringify(question)}\n`)
    return await this.next()
  }

  /** Closes its standard input, and waits for its end. */
  async end() {
    const isOver = this.#child.exitCode !== null || this.#child.signalCode !== null
    this.#child.stdin.end()
    if (!isOver) await within(once(this.#child, 'exit'), this.#name)
  }
}

/** What a promise resolves to, within the limit. */
export async function within(promise, what) {
  const limit = AbortSignal.timeout(LIMIT_SECONDS * 1000)
  const late = new Promise((_, reject) => {
    limit.addEventListener('abort', () => reject(new Error(`${what}: nothing within ${LIMIT_SECONDS} s`)))
  })
  return await Promise.race([promise, late])
}
