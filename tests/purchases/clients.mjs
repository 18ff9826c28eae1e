// The clients that buy: how each is started, and where it differs from what attacks.mjs says of plain clients.
import { fileURLToPath } from 'node:url'

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url))

/** httpx follows this many redirects, and the client pays for each. */
const MAX_REDIRECTS = 20

/** Its own controls know the contracts that it may pay with, so it refuses another one. */
const refusesOtherAssets = { fake: [] }

export const CLIENTS = {
  typescript: {
    title: '`@x402/fetch` 2.27.0',
    version: 2,
    command: () => [process.execPath, [path('buyers/typescript.mjs')]],
    plain: refusesOtherAssets,
  },
  'typescript-v1': {
    title: '`x402-fetch` 1.2.0 (v1)',
    version: 1,
    command: () => [process.execPath, [path('buyers/typescript-v1.mjs')]],
  },
  python: {
    title: 'Python `x402` 2.25.0',
    version: 2,
    command: () => [
      path('../../clients/python/.venv/bin/python'),
      [path('buyers/python.py')],
      { env: { ...process.env, PYTHONPATH: path('../../clients/python') } },
    ],
    plain: { ...refusesOtherAssets, moves: Array(1 + MAX_REDIRECTS).fill('agent') },
  },
  rust: {
    title: '`x402-reqwest` 2.0.2',
    version: 2,
    command: ({ rust }) => [rust, []],
  },
  // It speaks MPP, too, and is attacked by what that changes.
  mppx: {
    title: '`mppx` 0.11.0',
    version: 2,
    command: () => [process.execPath, [path('buyers/mppx.mjs')]],
    attacks: ['none', 'payee', 'moves', 'header', 'other-thief', 'other-agent'],
    plain: { 'other-thief': ['thief'], 'other-agent': ['agent'] },
  },
  // Go's guard below a client that has a column already.
  go: {
    title: "`@x402/fetch` 2.27.0 with Go's guard",
    version: 2,
    command: () => [process.execPath, [path('buyers/go.mjs')]],
    plain: refusesOtherAssets,
    hasColumn: false,
  },
}
