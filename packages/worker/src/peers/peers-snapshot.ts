/**
 * The isolates' knowledge of the peers: the chunks that a read may ask them for. `PeerState` writes it as one KV value.
 */
import * as v from "valibot";
import type { KvSnapshotOptions } from "../runtime/kv-snapshot.ts";
import { parseJson } from "../runtime/variables.ts";
import { formatHeld, heldSchema } from "../cache/held.ts";

const finite = v.pipe(v.number(), v.finite());
const integer = v.pipe(v.number(), v.safeInteger());
/** Each answers, and delivers one chunk from its cache in `meanMs`. `held` are its chunks by version. */
const peer = v.object({ name: v.string(), meanMs: finite, sdMs: finite, held: heldSchema });
/** The epoch grows with each publication. */
const schema = v.object({ epoch: integer, peers: v.array(peer) });

/** The peers that answer, each as a source of chunks. */
export type PeersInForce = v.InferOutput<typeof schema>;

/** The name of the KV value. */
export const PEERS_NAME = "peers";
/** The peers before the first publication, and of a PoP on its own. */
export const PEERS_EMPTY: PeersInForce = { epoch: 0, peers: [] };

/** The KV value of the peers, for `KvSnapshot`. */
export const PEERS: KvSnapshotOptions<PeersInForce> = {
  name: PEERS_NAME,
  empty: PEERS_EMPTY,
  parse: parsePeersInForce,
};

/** Returns a stored value, or undefined for a malformed one: then the previous value stays. */
export function parsePeersInForce(text: string): PeersInForce | undefined {
  return parseJson(schema, text);
}

/** Returns the text that `parsePeersInForce` reads. */
export function formatPeersInForce({ epoch, peers }: PeersInForce): string {
  return JSON.stringify({ epoch, peers: peers.map(({ held, ...rest }) => ({ ...rest, held: formatHeld(held) })) });
}
