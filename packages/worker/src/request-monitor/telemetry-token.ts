/**
 * Telemetry tokens: what a PoP hands to a client with a plan, and wants back with a report. A token is bound to this PoP,
 * to the client's address and to a term of some minutes, so it cannot be collected elsewhere nor used for long.
 *
 * `<term>.<HMAC-SHA-256 in base64url>`. Only clocks of Cloudflare count, and they may be minutes apart.
 */
import { AgaroseError } from "@agarose/core";

/** A token is issued for the term that the clock is in. */
export const TERM_MS = 5 * 60_000;
/** Terms that are past and still taken: a token lives 10 to 15 minutes. */
const TERMS_PAST = 2;
/** Terms that are to come, by our clock, and taken: the issuer's may be ahead. */
const TERMS_AHEAD = 1;
/** A key that was asked for and has not come since is asked for again. */
const ASK_AGAIN_MS = 5_000;
/** Tokens of one term kept, so that a busy client costs one HMAC a term. */
const TOKENS_MAX = 10_000;

const encoder = new TextEncoder();

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

  /** Whether `setKey` has been called: without a key there are no tokens. */
  get hasKey(): boolean {
    return this.#key !== undefined;
  }

  /** Whether it is time to ask for the key: many reads at once ask one time. */
  mayAskForKey(): boolean {
    if (this.hasKey || this.#now() - this.#askedMs < ASK_AGAIN_MS) return false;
    this.#askedMs = this.#now();
    return true;
  }

  async setKey(secret: string): Promise<void> {
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    this.#key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign", "verify"]);
  }

  /** A token for the client at `address`. `setKey` must have been called. */
  async issue(address: string): Promise<string> {
    const term = this.#currentTerm();
    if (term !== this.#term || this.#issued.size >= TOKENS_MAX) {
      this.#issued.clear();
      this.#term = term;
    }
    let token = this.#issued.get(address);
    if (token === undefined) {
      token = `${term}.${base64url(await this.#sign(this.#text(term, address)))}`;
      this.#issued.set(address, token);
    }
    return token;
  }

  /**
   * Checks that `token` was issued here, lately, to the client at `address`; compares in constant time. Returns a
   * name for the client that does not tell its address and stays the same over all terms. Throws FORBIDDEN.
   */
  async check(token: unknown, address: string): Promise<string> {
    const [, termText = "", mac = ""] = /^(\d{1,12})\.([\w-]{43})$/.exec(typeof token === "string" ? token : "") ?? [];
    if (mac === "") throw refused(token === undefined ? "the report has no token" : "its token is malformed");
    const term = Number(termText);
    const age = this.#currentTerm() - term;
    if (age > TERMS_PAST) throw refused(`its token expired: it is of ${age} terms ago, ${TERMS_PAST} are taken`);
    if (age < -TERMS_AHEAD) throw refused("its token is of the future");
    const signature = bytesOf(mac);
    const text = encoder.encode(this.#text(term, address));
    if (!(await crypto.subtle.verify("HMAC", this.#required(), signature, text))) {
      throw refused("its token is not one of this PoP for this address");
    }
    return base64url(await this.#sign(`agarose-client\n${address}`)).slice(0, 16);
  }

  #currentTerm(): number {
    return Math.floor(this.#now() / TERM_MS);
  }

  #text(term: number, address: string): string {
    return `agarose-telemetry\n${this.#pop}\n${term}\n${address}`;
  }

  async #sign(text: string): Promise<Uint8Array> {
    return new Uint8Array(await crypto.subtle.sign("HMAC", this.#required(), encoder.encode(text)));
  }

  #required(): CryptoKey {
    if (this.#key) return this.#key;
    throw new AgaroseError("INTERNAL", "telemetry tokens are used before they have a key");
  }
}

/** Where a request comes from, as Cloudflare says: one customer's IPv6 addresses, a /64, count as one. */
export function clientAddress(headers: { get(name: string): string | null }): string {
  const address = headers.get("cf-connecting-ip") ?? "unknown";
  return address.includes(":") ? `${prefix64(address)}/64` : address;
}

/** The first 64 bits of an IPv6 address, as four groups without leading zeros. */
function prefix64(address: string): string {
  const [before = "", after] = address.toLowerCase().split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const head = groups(before);
  const tail = after === undefined ? [] : groups(after);
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => "0");
  const all = [...head, ...(after === undefined ? [] : zeros), ...tail];
  return all
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":");
}

function refused(problem: string): AgaroseError {
  return new AgaroseError("FORBIDDEN", `telemetry refused: ${problem}; every plan brings a new one`);
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}
