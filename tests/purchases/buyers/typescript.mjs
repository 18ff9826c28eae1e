// The TypeScript client of x402 version 2 above the guard in TypeScript.
import { guardFetch } from 'clresolve-guard'
import { buyAbove } from './v2.mjs'

await buyAbove(guardFetch)
