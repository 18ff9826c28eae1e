/** Why the guard refused. */
export type GuardErrorCode =
  /** clresolve denies the agent, or every entry of its terms; see `codes`. */
  | "denied"
  /** clresolve did not answer in time, or its answer is not usable; see `cause`. */
  | "unavailable"
  /** The seller redirects to another URL, or another URL responded. */
  | "redirected"
  /** The 402 is larger than 64 KiB, takes longer than 10 s, is truncated, or cannot be decoded; see `cause`. */
  | "unreadable"
  /** No pending decision allows a payment at this URL: none was made, it has expired, or it was used. */
  | "no-decision"
  /** More than one payment header, or one with more than one value. */
  | "two-payments"
  /** The signed payment differs from what was allowed; see `codes`. */
  | "payment-denied"
  /** The request carries a credential of another payment protocol: Payment, L402 or LSAT. */
  | "other-protocol";

/** The guard refused, and nothing was paid. */
export class GuardError extends Error {
  constructor(code: GuardErrorCode, codes?: unknown[], cause?: unknown);
  readonly code: GuardErrorCode;
  /** The codes of the reasons that decide, without warnings. `clresolve explain CODE` explains them. */
  readonly codes: readonly string[];
}

/** The signer of decisions. */
export interface Signer {
  /** `iss` of the signature: `sign.issuer` of the daemon's configuration. */
  issuer: string;
  /** The trusted keys, in the form of the daemon's `/.well-known/jwks.json`. Get them over a channel that you trust. */
  jwks: { keys: { kty?: string; crv?: string; x?: string; kid?: string }[] };
}

/** The documents of a payment that was sent, as input for `clresolve receipt verify`. */
export interface Paid {
  /** The URL that was paid for. */
  readonly url: string;
  /** The daemon's decision that allowed the payment, for `--decision`. */
  readonly decision: object;
  /** The payment header, for `--payment`. */
  readonly payment: string;
  /** `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE`, for `--settlement`. `undefined` without such a header or response. */
  readonly settlement: string | undefined;
}

/** Whom a guard pays: one agent for one verb. */
export interface OneAgent {
  /** The agent's normalized ENS name. */
  agent: string;
  /** The verb that is paid for. */
  verb: string;
  name?: undefined;
}

/** Whom a guard pays: any seller whose payee the daemon proves. */
export interface AnySeller {
  agent: "any";
  /** The seller's normalized ENS name, if you know it: the guard trusts it, unlike the seller's. */
  name?: string;
  /** The verb that is paid for, if the seller may have an Agent-Card. */
  verb?: string;
}

export type GuardOptions = (OneAgent | AnySeller) & {
  /**
   * The daemon's address: `http://127.0.0.1:8402`, `unix:/run/clresolve.sock`, or an https URL. Plain http to another
   * machine requires `signer`.
   */
  daemon: string | URL;
  /** Tighter limits than the daemon's, in the form of `POST /v1/decisions`. */
  limits?: object;
  /** Timeout of each response of the daemon, in milliseconds. Default: 5,000. */
  timeout?: number;
  /** An additional trusted certificate for an https daemon, as PEM. */
  ca?: string;
  /** If given, every decision must be signed by one of its keys. The daemon signs none for `agent: "any"`. */
  signer?: Signer;
  /**
   * Receives the documents of each payment that was sent. Its exceptions and rejections are ignored, so that no paid
   * response is lost.
   */
  onPaid?: (paid: Paid) => void | Promise<void>;
};

/**
 * A `fetch` for one agent and verb, or for any seller; pass it to `wrapFetchWithPayment`. It refuses with
 * {@link GuardError}.
 *
 * @throws TypeError if the options are unknown, invalid or unsafe
 */
export function guardFetch(fetch: typeof globalThis.fetch, options: GuardOptions): typeof globalThis.fetch;
