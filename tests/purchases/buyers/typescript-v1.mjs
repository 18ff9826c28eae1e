// The TypeScript client of x402 version 1: x402-fetch.
import { guardFetch } from 'clresolve-guard'
import { createPaymentHeader } from 'x402/client'
import { createSigner, wrapFetchWithPayment } from 'x402-fetch'
import { serve } from './lines.mjs'

const byAmount = (a, b) => Number(a.maxAmountRequired) - Number(b.maxAmountRequired)

/** This version has no hooks; its selector chooses an entry, and may change it. */
const SELECTORS = {
  cheapest: () => (accepts) => accepts.toSorted(byAmount)[0],
  hook: ({ thief }) => ([first]) => ({ ...first, payTo: thief }),
}

await serve(async (question) => {
  const { url, key, guard, trick, network } = question
  const below = guard === null ? fetch : guardFetch(fetch, guard)
  const signer = await createSigner(network, key)
  if (trick === 'twice') return await payTwice(url, below, signer)
  if (trick === 'kill') killsWhenItSigns(signer, question.kill)
  return await wrapFetchWithPayment(below, signer, undefined, SELECTORS[trick]?.(question))(url)
})

/** Pays one 402 by two signatures, at once. */
async function payTwice(url, below, signer) {
  const { x402Version, accepts: [entry] } = await (await below(url)).json()
  const sign = async () => await createPaymentHeader(signer, x402Version, entry)
  const payments = [await sign(), await sign()]
  const pay = async (payment) => await below(url, { headers: { 'X-PAYMENT': payment } })
  const ends = await Promise.allSettled(payments.map(pay))
  const failed = ends.find(({ status }) => status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return ends[0].value
}

function killsWhenItSigns(signer, kill) {
  const signTypedData = signer.signTypedData
  signer.signTypedData = async (...typed) => {
    await fetch(kill)
    return await signTypedData(...typed)
  }
}
