/** The PoPs to co-operate with, from the variables PEERS and PEER_KEY. */
import { AgaroseError } from "@agarose/core";

export interface Peer {
  readonly name: string;
  /** Base URL of the PoP, without a slash at its end. */
  readonly url: string;
}

export interface PeerSettings {
  /** At least one. */
  readonly pops: readonly Peer[];
  /** Signs what PoPs tell each other. */
  readonly key: string;
}

/**
 * The peers of PoP `pop`; undefined without any, or without a key. Its own name in the list is no peer, so that all PoPs may
 * have the same list. Throws CONFIG_INVALID.
 */
export function parsePeers(pop: string, text: string | undefined, key: string | undefined): PeerSettings | undefined {
  if (!text) return undefined;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw invalid("is not JSON", error);
  }
  if (!Array.isArray(json)) throw invalid("is not a list of PoPs");
  const names = new Set<string>();
  const pops = json.map((entry: Partial<Peer> | null): Peer => {
    const { name, url } = entry ?? {};
    if (typeof name !== "string" || name === "" || names.has(name)) {
      throw invalid(`has a PoP without a name of its own: ${JSON.stringify(entry)}`);
    }
    names.add(name);
    if (typeof url !== "string" || !/^https?:\/\//.test(url) || !URL.canParse(url)) {
      throw invalid(`has no http(s) URL for PoP ${name}`);
    }
    return { name, url: url.replace(/\/+$/, "") };
  });
  const others = pops.filter(({ name }) => name !== pop);
  return others.length > 0 && key !== undefined ? { pops: others, key } : undefined;
}

function invalid(problem: string, cause?: unknown): AgaroseError {
  return new AgaroseError("CONFIG_INVALID", `variable PEERS ${problem} (wrangler.toml)`, { variable: "PEERS" }, cause);
}
