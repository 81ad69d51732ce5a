/**
 * The keys that a period may fill: those that several clients have asked for, so that one address alone cannot make the
 * PoP fetch anything. A client is a network, or a token for who reads a private key with one.
 *
 * All of it is in memory. Of a client there is a hash with a random salt, and of a key no more hashes than clients are
 * needed; it has none once they have come. Each day begins with another salt and without any hash. What was a candidate
 * on the day before stays one, so that midnight changes nothing for a key that is read every day.
 */
import { hmacKey, sign, toBase64url } from "../runtime/crypto.ts";
import { parseVariables, wholeNumber } from "../runtime/variables.ts";
import { SHARD_KEYS_MAX } from "./request-tally.ts";

/** The variables of this room. */
export const CANDIDATE_VARIABLES = {
  FILL_CLIENTS_MIN: wholeNumber(
    "How many clients must request an object on one day before the cache is filled with it; `1` for a PoP that one " +
      "office or one server uses. A client is a network, /24 of IPv4 and /48 of IPv6, or a token that opens a private key.",
    2,
    16,
  ),
};

/** Returns how many clients must ask for a key. Throws CONFIG_INVALID. */
export function parseFillClientsMin(env: object): number {
  return parseVariables(CANDIDATE_VARIABLES, env).fillClientsMin;
}

const DAY_MS = 86_400_000;
const SALT_BYTES = 32;
const HASH_CHARACTERS = 12;
const ENOUGH: ReadonlySet<string> = new Set();

interface FillCandidatesOptions {
  readonly clientsMin: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Keys to remember; of more, those that were not asked for lately are forgotten. */
  readonly keysMax?: number;
}

/** The candidates among the keys of one shard. */
export class FillCandidates {
  readonly #options: FillCandidatesOptions;
  #day = Number.NaN;
  #salt: Promise<CryptoKey> | undefined;
  /** Hashes of clients by key, the key that was asked for last at the end; `ENOUGH` once they suffice. */
  #clients = new Map<string, ReadonlySet<string>>();
  #before: ReadonlySet<string> = new Set();

  constructor(options: FillCandidatesOptions) {
    this.#options = options;
  }

  /** Whether a period may fill `key`. */
  has(key: string): boolean {
    if (this.#options.clientsMin <= 1) return true;
    void this.#beginDay();
    return this.#clients.get(key) === ENOUGH || this.#before.has(key);
  }

  async note(entries: readonly (readonly [key: string, clients: readonly string[]])[]): Promise<void> {
    const { clientsMin, keysMax = SHARD_KEYS_MAX } = this.#options;
    if (clientsMin <= 1) return;
    const salt = this.#beginDay();
    const hmac = await salt;
    const hashes = new Map<string, string>();
    for (const client of new Set(entries.flatMap(([, clients]) => clients))) {
      hashes.set(client, toBase64url(await sign(hmac, client)).slice(0, HASH_CHARACTERS));
    }
    // Midnight may have passed in the meantime.
    if (this.#beginDay() !== salt) return;
    for (const [asked, clients] of entries) this.#add(asked, clients, hashes);
    for (const oldest of this.#clients.keys()) {
      if (this.#clients.size <= keysMax) return;
      this.#clients.delete(oldest);
    }
  }

  #add(key: string, clients: readonly string[], hashes: ReadonlyMap<string, string>): void {
    const known = this.#clients.get(key);
    const all = new Set([...(known ?? []), ...clients.map((client) => hashes.get(client)!)]);
    const isEnough = known === ENOUGH || all.size >= this.#options.clientsMin;
    this.#clients.delete(key);
    this.#clients.set(key, isEnough ? ENOUGH : all);
  }

  /** Forgets the clients of the day before, and returns the salt of today. */
  #beginDay(): Promise<CryptoKey> {
    const day = Math.floor(this.#options.now() / DAY_MS);
    if (day === this.#day && this.#salt) return this.#salt;
    const known = day === this.#day + 1 ? [...this.#clients] : [];
    this.#before = new Set(known.flatMap(([key, clients]) => (clients === ENOUGH ? [key] : [])));
    this.#clients = new Map();
    this.#day = day;
    return (this.#salt = hmacKey(toBase64url(crypto.getRandomValues(new Uint8Array(SALT_BYTES)))));
  }
}
