/**
 * Another PoP's cache as a source, with one GET for each shard. A bundle would save requests, but it would send
 * unwanted chunks and hold up one stripe behind another.
 */
import { readExactly, refuseChunk } from "./body.ts";
import { HAS_MESSAGES, toAgaroseError } from "../errors.ts";
import { encodeKey } from "../format/key.ts";
import type { LatencyEstimate } from "../latency.ts";
import type { Manifest } from "../format/manifest/index.ts";
import type { FetchPort } from "../ports.ts";
import type { ChunkSource } from "./source.ts";

/** Dependencies of a peer source. */
export interface PeerSourceOptions {
  readonly manifest: Pick<Manifest, "key" | "version">;
  readonly peer: {
    readonly name: string;
    readonly url: string;
  };
  /** The chunks of every stripe that it is believed to hold now. */
  readonly chunks: () => readonly number[];
  /** Time to deliver one chunk as believed now. */
  readonly latency: () => LatencyEstimate;
  readonly fetch: FetchPort;
}

/** The path of a shard in a PoP's cache begins with it. */
export const PEER_CHUNK_PREFIX = "/v1/chunk/";

/** The chunks that another PoP has cached. */
export function peerSource({ manifest, peer, chunks, latency, fetch }: PeerSourceOptions): ChunkSource {
  const { name, url } = peer;
  return {
    id: name,
    kind: "peer",
    get latency() {
      return latency();
    },
    has: (_stripe, chunk) => chunks().includes(chunk),
    async fetch({ stripe, chunk, signal }) {
      const { key, version } = manifest;
      const path = `${PEER_CHUNK_PREFIX}${encodeKey(key)}?version=${version}&stripe=${stripe.index}&chunk=${chunk}`;
      try {
        const response = await fetch(`${url}${path}`, { signal });
        const what = HAS_MESSAGES && `PoP ${name}, chunk ${chunk}`;
        if (response.status === 200) return await readExactly(response, stripe.shardBytes, what);
        return await refuseChunk(response, what);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throw toAgaroseError(error, "SOURCE_FAILED");
      }
    },
  };
}
