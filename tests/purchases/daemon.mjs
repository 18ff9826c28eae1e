// The daemon: `clresolve serve` on a port of its own, which it keeps when it is started again.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { listen } from '../e2e/lifecycle.mjs'
import { within } from './service.mjs'

const POLL_MILLISECONDS = 50

export class Daemon {
  #executable
  #arguments
  #log
  #child

  /** Starts the daemon with `configuration` (TOML without [http]); its files go into `folder`. */
  static async start(executable, configuration, folder) {
    const port = await freePort()
    const file = join(folder, 'clresolve.toml')
    writeFileSync(file, `${configuration}\n[http]\nlisten = "127.0.0.1:${port}"\n`)
    const daemon = new Daemon()
    process.on('exit', () => daemon.#child?.kill('SIGKILL'))
    daemon.url = `http://127.0.0.1:${port}`
    daemon.#executable = executable
    daemon.#arguments = ['serve', '--config', file]
    daemon.#log = openSync(join(folder, 'clresolve.log'), 'a')
    await daemon.revive()
    return daemon
  }

  /** Starts it again where it does not run. */
  async revive() {
    if (this.#isRunning()) return
    this.#child = spawn(this.#executable, this.#arguments, { stdio: ['ignore', this.#log, this.#log] })
    await within(this.#ready(), 'the daemon')
  }

  /** Kills it, at once, and waits until it is gone. */
  async kill() {
    if (!this.#isRunning()) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }

  #isRunning() {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  async #ready() {
    for (;;) {
      if (!this.#isRunning()) throw new Error('the daemon ended; its log says why')
      const isReady = await fetch(`${this.url}/readyz`).then((reply) => reply.ok, () => false)
      if (isReady) return
      await pause(POLL_MILLISECONDS)
    }
  }
}

async function freePort() {
  const server = createServer()
  const port = await listen(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}
