// @ts-check
/** Checks the options of a guard. Messages suggest the spelling that was probably meant. */

/** The members of `GuardOptions`. */
const KNOWN = ["daemon", "agent", "name", "verb", "limits", "timeout", "ca", "signer", "onPaid"];

/** The value of `agent` that means every seller, and other spellings of it. */
export const ANY = "any";
const LIKE_ANY = [ANY, "*"];

/** Maximum edit distance between an unknown option and a suggestion, which must begin with the same letter. */
const MAX_EDITS = 2;

/**
 * Checks that every option is known.
 *
 * @param {object} options
 */
export function checkNames(options) {
  for (const name of Object.keys(options)) {
    if (KNOWN.includes(name)) continue;
    const [nearest] = KNOWN.map((known) => ({ known, edits: edits(name, known) })).sort((a, b) => a.edits - b.edits);
    const isNear = nearest.edits <= MAX_EDITS && name.toLowerCase().startsWith(nearest.known[0]);
    const rest = isNear ? `did you mean ${nearest.known}?` : `unknown option; the options are ${KNOWN.join(", ")}`;
    throw new TypeError(`${name}: ${rest}`);
  }
}

/**
 * Checks whom the guard pays: one agent for one verb, or any seller. Only then may the verb be omitted, and a seller's
 * name be given.
 *
 * @param {{ agent: string, name?: string, verb?: string }} options
 */
export function checkWhom({ agent, name, verb }) {
  if (!agent) throw new TypeError('agent: expected an ENS name, or "any"');
  if (agent !== ANY) checkName("agent", agent);
  if (verb === "" || (!verb && agent !== ANY)) throw new TypeError("verb must not be empty");
  if (name === undefined) return;
  if (agent !== ANY) throw new TypeError('name: expected only with agent: "any"');
  checkName("name", name);
}

/**
 * Checks the parts of the normal form (ENSIP-15) that need no tables: no ASCII capitals, no spaces, no empty labels. A
 * name without a dot is a top-level domain, not an agent.
 *
 * @param {string} option
 * @param {string} name
 */
function checkName(option, name) {
  const spelt = name.replace(/\s/g, "").replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const labels = spelt.split(".").filter((label) => label !== "");
  if (labels.length === 0) throw new TypeError(`${option} must not be empty`);
  if (option === "agent" && LIKE_ANY.includes(labels.join("."))) throw new TypeError('agent: did you mean "any"?');
  const meant = labels.length > 1 ? labels.join(".") : `${labels[0]}.eth`;
  if (name !== meant) {
    throw new TypeError(`${option}: expected the full ENS name in normal form; did you mean ${meant}?`);
  }
}

/**
 * The number of characters to insert, delete or replace (Levenshtein distance).
 *
 * @param {string} from
 * @param {string} to
 */
function edits(from, to) {
  let row = [...to, ""].map((_, at) => at);
  for (const [count, letter] of [...from].entries()) {
    const next = [count + 1];
    for (const [at, other] of [...to].entries()) {
      next.push(Math.min(next[at] + 1, row[at + 1] + 1, row[at] + Number(letter !== other)));
    }
    row = next;
  }
  return row[to.length];
}
