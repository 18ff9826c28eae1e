// @ts-check
/** Checks the options of a guard. Messages suggest the spelling that was probably meant. */

/** The members of `GuardOptions`. */
const KNOWN = ["daemon", "agent", "verb", "limits", "timeout", "ca", "signer", "onPaid"];

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
 * Checks the parts of the normal form (ENSIP-15) that need no tables: no ASCII capitals, no spaces, no empty labels. A
 * name without a dot is a top-level domain, not an agent.
 *
 * @param {string} agent
 */
export function checkAgent(agent) {
  const spelt = agent.replace(/\s/g, "").replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const labels = spelt.split(".").filter((label) => label !== "");
  const meant = labels.length > 1 ? labels.join(".") : `${labels.join()}.eth`;
  if (agent !== meant) throw new TypeError(`agent: expected the full ENS name in normal form; did you mean ${meant}?`);
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
