/**
 * Telemetry tokens: a PoP hands one to a client with each plan and expects it with each report. A token is bound to
 * this PoP, to the client's address and to a term of five minutes, so no other client can use it, and no client for
 * long.
 *
 * `<term>.<HMAC-SHA-256 in base64url>`. Only clocks of Cloudflare count, and they may be minutes apart.
 */
import { AgaroseError } from "@agarose/core";
import { fromBase64url, hmacKey, sign, toBase64url, verify } from "../runtime/crypto.ts";
import { parseVariables, secret } from "../runtime/variables.ts";
import { clientShareName, UNKNOWN_ADDRESS } from "../runtime/client-address.ts";

/** The variables of this room. */
export const TELEMETRY_VARIABLES = {
  TELEMETRY_KEY: secret("The secret of telemetry tokens. Default: one that the PoP creates for itself."),
};

/** Checks the variables of this room; undefined where none is set. Throws CONFIG_INVALID. */
export function parseTelemetryKey(env: object): string | undefined {
  return parseVariables(TELEMETRY_VARIABLES, env).TELEMETRY_KEY;
}

/** The length of a term. A token is issued for the current one. */
export const TERM_MS = 5 * 60_000;
/** Past terms that are still accepted: a token lives 10 to 15 minutes. */
const TERMS_PAST = 2;
/** Future terms that are accepted: the issuer's clock may be ahead. */
const TERMS_AHEAD = 1;
/** After so long without an answer, the key is asked for again. */
const ASK_AGAIN_MS = 5_000;
/** Tokens that are kept during a term: a busy client costs one HMAC a term. */
const TOKENS_MAX = 10_000;

/** Issues and checks tokens. */
export class TelemetryTokens {
  readonly #pop: string;
  readonly #now: () => number;
  #key: CryptoKey | undefined;
  #term = 0;
  #askedMs = Number.NEGATIVE_INFINITY;
  readonly #issued = new Map<string, string>();

  /** @param now milliseconds since 1970. */
  constructor(pop: string, now: () => number) {
    this.#pop = pop;
    this.#now = now;
  }

  /** Whether `setKey` was called: without a key there are no tokens. */
  get hasKey(): boolean {
    return this.#key !== undefined;
  }

  /** Returns whether it is time to ask for the key: many simultaneous reads ask once. */
  mayAskForKey(): boolean {
    if (this.hasKey || this.#now() - this.#askedMs < ASK_AGAIN_MS) return false;
    this.#askedMs = this.#now();
    return true;
  }

  /** Sets the secret that signs tokens. */
  async setKey(text: string): Promise<void> {
    this.#key = await hmacKey(text);
  }

  /** Returns a token for the client at `address`. Throws INTERNAL before `setKey`. */
  async issue(address = UNKNOWN_ADDRESS): Promise<string> {
    const term = this.#currentTerm();
    if (term !== this.#term || this.#issued.size >= TOKENS_MAX) {
      this.#issued.clear();
      this.#term = term;
    }
    let token = this.#issued.get(address);
    if (token === undefined) {
      token = `${term}.${toBase64url(await sign(this.#required(), this.#text(term, address)))}`;
      this.#issued.set(address, token);
    }
    return token;
  }

  /**
   * Checks that this PoP issued `token` recently to the client at `address`, in constant time. Returns a name for its
   * share (`clientShareName`) that hides the address and stays the same in all terms. Throws FORBIDDEN.
   */
  async check(token: unknown, address = UNKNOWN_ADDRESS): Promise<string> {
    const [, termText = "", mac = ""] = /^(\d{1,12})\.([\w-]{43})$/.exec(typeof token === "string" ? token : "") ?? [];
    if (mac === "") throw refused(token === undefined ? "the report has no token" : "its token is malformed");
    const term = Number(termText);
    const age = this.#currentTerm() - term;
    if (age > TERMS_PAST) throw refused(`its token expired: it is ${age} terms old, and ${TERMS_PAST} are accepted`);
    if (age < -TERMS_AHEAD) throw refused("its token is from the future");
    if (!(await verify(this.#required(), fromBase64url(mac), this.#text(term, address)))) {
      throw refused("its token is not one of this PoP for this address");
    }
    return toBase64url(await sign(this.#required(), `agarose-client\n${clientShareName(address)}`)).slice(0, 16);
  }

  #currentTerm(): number {
    return Math.floor(this.#now() / TERM_MS);
  }

  #text(term: number, address: string): string {
    return `agarose-telemetry\n${this.#pop}\n${term}\n${address}`;
  }

  #required(): CryptoKey {
    if (this.#key) return this.#key;
    throw new AgaroseError("INTERNAL", "telemetry tokens are used before they have a key");
  }
}

function refused(problem: string): AgaroseError {
  return new AgaroseError("FORBIDDEN", `telemetry refused: ${problem}; every plan brings a new one`);
}
