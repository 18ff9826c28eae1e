// How every script of this folder starts and stops: one JSON line on stdout when it is ready, the end with stdin's.

/** Says that the service is up; exits as soon as stdin closes. */
export function serveUntilStdinCloses(ready) {
  process.stdout.write(`${JSON.stringify(ready)}\n`)
  process.stdin.resume().on('end', () => process.exit(0))
}

/** Listens on a free loopback port and returns it. */
export async function listen(server) {
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  return server.address().port
}
