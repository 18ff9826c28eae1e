// @ts-check
/**
 * Payment challenges and credentials of protocols other than x402.
 *
 * A seller can demand payment by x402 and by another protocol in one response. The daemon judges only the x402 terms,
 * so the client must never see the other demand.
 */

/** What an authentication scheme that demands a payment contains: clients take `Payments` or `L402x` for one, too. */
const SCHEME = "(?:payment|l402|lsat)";

/**
 * The parameter by which clients of Lightning find an invoice, whatever the scheme, and even inside a quoted string. Some
 * drop the names of schemes from it first (`invL402oice`).
 */
const INVOICE = "(?:invoice|macaroon|(?:l402|lsat)[a-z]{0,10})[^!-~]*=";

/** The headers in which clients find terms, some of them whatever the status. */
const TERMS_HEADERS = ["payment-required", "x-payment-required"];

/** The headers that carry challenges. */
const CHALLENGE_HEADERS = ["www-authenticate", "proxy-authenticate"];

/** The headers in which published clients send credentials. */
const CREDENTIAL_HEADERS = ["authorization", "proxy-authorization", "payment-authorization"];

/** The member of an MCP message in which published clients send credentials. */
const CREDENTIAL_MEMBER = /org\.paymentauth\/credential"\s*:/;

/** An escape in JSON. The code of an ASCII character, or the escaped character, is captured. */
const ESCAPE = /\\(?:u00([0-9a-f]{2})|(.))/gis;

/** Maximum length of a challenge header that is parsed, in bytes. A longer one is removed if it mentions a payment. */
const MAX_CHALLENGES_BYTES = 16 * 1024;

/** The grammar of RFC 9110, sections 11.2 and 11.3. */
const TCHAR = "!#$%&'*+\\-.^_`|~0-9A-Za-z";
const TOKEN = `[${TCHAR}]+`;
const QUOTED = '"(?:[^"\\\\\\x00-\\x08\\x0a-\\x1f\\x7f]|\\\\[^\\x00-\\x08\\x0a-\\x1f\\x7f])*"';
const PARAM = `${TOKEN}[ \\t]*=[ \\t]*(?:${TOKEN}|${QUOTED})`;
const TOKEN68 = "[0-9A-Za-z\\-._~+/]+=*";

/** One element of the list: the start of a challenge (its scheme is captured), or another parameter of it. */
const ELEMENT = new RegExp(`[ \\t,]*((${TOKEN})(?: +(?:${PARAM}|${TOKEN68}))?|${PARAM})[ \\t]*(?:,|$)`, "dy");

const MENTION = new RegExp(`${SCHEME}|${INVOICE}`, "i");

/** A challenge that demands a payment. */
const PAYMENT = new RegExp(`^[${TCHAR}]*${SCHEME}|${INVOICE}`, "i");

/** Text that a client may mistake for a challenge if it searches for one, even inside a quoted string. */
const LOOKALIKE = new RegExp(`${SCHEME}(?:(?!${SCHEME})[${TCHAR}])*[^!-~]+(?:[!#-+\\--<>-~]+[^!-~]*)?=`, "i");

/** A credential in a credential header, and one of MPP (JSON in base64) in any other: a challenge can name the header. */
const CREDENTIAL = new RegExp(`(?:^|,)[^!-~]*${SCHEME}(?:[^${TCHAR}]|$)`, "i");
const CREDENTIAL_ELSEWHERE = new RegExp(`(?:^|,)[^!-~]*payment[^!-~]+e[wy][!-~]{30}`, "i");

/**
 * Whether a request carries a credential of another payment protocol.
 *
 * @param {Headers} headers
 */
export function carriesCredentials(headers) {
  return [...headers].some(([name, value]) => isCredential(name, value));
}

/**
 * @param {string} name in lower case
 * @param {string} value
 */
export function isCredential(name, value) {
  return CREDENTIAL_HEADERS.includes(name) ? CREDENTIAL.test(value) : CREDENTIAL_ELSEWHERE.test(value);
}

/**
 * Whether the body of a request carries such a credential. Reads the whole body, from a copy.
 *
 * @param {Request} request
 */
export async function bodyCarriesCredential(request) {
  /** @type {Uint8Array[]} */
  const chunks = [];
  const copy = new WritableStream({ write: (chunk) => void chunks.push(chunk) });
  await request.clone().body?.pipeTo(copy, { signal: request.signal });
  const text = Buffer.concat(chunks).toString("latin1");
  const plain = text.replace(ESCAPE, (_, code, other) => other ?? String.fromCharCode(Number.parseInt(code, 16)));
  return CREDENTIAL_MEMBER.test(plain);
}

/**
 * Removes the payment challenges of other protocols from the headers of a response. Returns whether there were any.
 *
 * @param {Headers} headers
 */
export function removeChallenges(headers) {
  let removed = false;
  for (const name of CHALLENGE_HEADERS) {
    const value = headers.get(name);
    const kept = value === null ? value : withoutPayments(value);
    if (kept === value) continue;
    removed = true;
    if (kept) headers.set(name, kept);
    else headers.delete(name);
  }
  return removed;
}

/**
 * Removes the terms from the headers of a response that is not a 402. Returns whether there were any.
 *
 * @param {Headers} headers
 */
export function removeTerms(headers) {
  const found = TERMS_HEADERS.filter((name) => headers.has(name));
  for (const name of found) headers.delete(name);
  return found.length > 0;
}

/**
 * A header value without its payment challenges. An ambiguous value that mentions a payment is removed entirely
 * (`""`). A value without a payment challenge is returned unchanged.
 *
 * @param {string} value
 */
export function withoutPayments(value) {
  if (!MENTION.test(value)) return value;
  const challenges = value.length <= MAX_CHALLENGES_BYTES ? parsed(value) : undefined;
  if (!challenges) return "";
  const others = challenges.map(({ start, end }) => value.slice(start, end)).filter((text) => !PAYMENT.test(text));
  const kept = others.length === challenges.length ? value : others.join(", ");
  return LOOKALIKE.test(kept) ? "" : kept;
}

/**
 * The challenges of a value, or `undefined` if the value does not follow the grammar.
 *
 * @param {string} value
 */
function parsed(value) {
  /** @type {{ start: number, end: number }[]} */
  const challenges = [];
  ELEMENT.lastIndex = 0;
  while (/[^ \t,]/.test(value.slice(ELEMENT.lastIndex))) {
    const element = ELEMENT.exec(value);
    const [start, end] = element?.indices?.[1] ?? [0, 0];
    const last = challenges.at(-1);
    if (element?.[2]) challenges.push({ start, end });
    else if (element && last) last.end = end;
    else return undefined;
  }
  return challenges;
}
