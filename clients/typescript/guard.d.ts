/** Why the guard refused. */
export type GuardErrorCode =
  /** clresolve denies the agent, or every entry of its terms; `codes` says why. */
  | "denied"
  /** clresolve did not answer, not in time, or not with what can be relied on. */
  | "unavailable"
  /** The seller redirects, or another URL answered. */
  | "redirected"
  /** The 402 is longer than 64 KiB or 10 s, breaks off or cannot be decoded; `cause` is the local error. */
  | "unreadable"
  /** A payment for which no decision waits at this URL: none was made, it is over, or it was used. */
  | "no-decision"
  /** More than one payment header, or one with more than one value. */
  | "two-payments"
  /** What is signed is not what was allowed; `codes` says why. */
  | "payment-denied"
  /** The request carries a credential of another payment protocol: Payment, L402 or LSAT. */
  | "other-protocol";

/** The guard refused. Nothing was paid. */
export class GuardError extends Error {
  constructor(code: GuardErrorCode, codes?: unknown[], cause?: unknown);
  readonly code: GuardErrorCode;
  /** Codes of the daemon; `clresolve explain CODE` explains them. */
  readonly codes: readonly string[];
}

/** Who signs decisions. */
export interface Signer {
  /** `iss` of the signature: `sign.issuer` of the daemon's configuration. */
  issuer: string;
  /** The trusted keys, as `/.well-known/jwks.json` of the daemon has them. Hand them over by a way that you trust. */
  jwks: { keys: { kty?: string; crv?: string; x?: string; kid?: string }[] };
}

/** What is to be kept of a payment that left, for `clresolve receipt verify`. */
export interface Paid {
  /** The URL that was paid for. */
  readonly url: string;
  /** The decision that let the payment leave, as the daemon wrote it: `--decision`. */
  readonly decision: object;
  /** The payment header: `--payment`. */
  readonly payment: string;
  /** The reply's `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE`: `--settlement`. Without it there was none, or no reply. */
  readonly settlement: string | undefined;
}

export interface GuardOptions {
  /**
   * Where the daemon is: `http://127.0.0.1:8402`, `unix:/run/clresolve.sock`, or an https URL. Plain http to another
   * machine is refused without `signer`.
   */
  daemon: string | URL;
  /** The agent's ENS name in its normal form. */
  agent: string;
  /** The verb that is paid for. */
  verb: string;
  /** Limits that are tighter than the daemon's, as `POST /v1/decisions` takes them. */
  limits?: object;
  /** Milliseconds for each answer of the daemon; 5,000 unless given. */
  timeout?: number;
  /** A certificate to trust for an https daemon beside those of Node, as PEM. */
  ca?: string;
  /** With it every decision must be signed by one of these keys. */
  signer?: Signer;
  /**
   * Takes what is to be kept of each payment that left. What it throws, or rejects with, is dropped, so that no paid reply
   * is lost.
   */
  onPaid?: (paid: Paid) => void | Promise<void>;
}

/**
 * A `fetch` for one agent and verb, to be given to `wrapFetchWithPayment`. It refuses with {@link GuardError}.
 *
 * @throws TypeError when the options cannot be made safe
 */
export function guardFetch(fetch: typeof globalThis.fetch, options: GuardOptions): typeof globalThis.fetch;
