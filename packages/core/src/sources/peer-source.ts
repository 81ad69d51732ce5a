/**
 * Another PoP's cache as a source, with one GET for each shard. A bundle would save requests, but it would send
 * unwanted chunks and hold up one stripe behind another.
 */
import { readExactly } from "./body.ts";
import { AgaroseError, HAS_MESSAGES, toAgaroseError } from "../errors.ts";
import { encodeKey } from "../format/key.ts";
import type { LatencyEstimate } from "../latency.ts";
import type { Manifest } from "../format/manifest/index.ts";
import type { FetchPort } from "../ports.ts";
import type { ChunkRequest, ChunkSource } from "./source.ts";

/** Dependencies of a PeerSource. */
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
  /** Returns request headers that authenticate the caller, for a path with its query. Default: none. */
  readonly proof?: (path: string) => Promise<Record<string, string>>;
}

/** The start of every `chunkPath`. */
export const PEER_CHUNK_PREFIX = "/v1/chunk/";

/** Returns path and query of one shard in a PoP's cache. */
function chunkPath(manifest: Pick<Manifest, "key" | "version">, stripe: number, chunk: number): string {
  return `${PEER_CHUNK_PREFIX}${encodeKey(manifest.key)}?version=${manifest.version}&stripe=${stripe}&chunk=${chunk}`;
}

/** The chunks that another PoP has cached. */
export class PeerSource implements ChunkSource {
  readonly id: string;
  readonly kind = "peer";
  readonly #options: PeerSourceOptions;

  constructor(options: PeerSourceOptions) {
    this.id = options.peer.name;
    this.#options = options;
  }

  get latency(): LatencyEstimate {
    return this.#options.latency();
  }

  has(_stripe: number, chunk: number): boolean {
    return this.#options.chunks().includes(chunk);
  }

  async fetch({ stripe, chunk, signal }: ChunkRequest): Promise<Uint8Array> {
    const { manifest, peer, fetch, proof } = this.#options;
    const path = chunkPath(manifest, stripe.index, chunk);
    try {
      const response = await fetch(`${peer.url}${path}`, { ...(proof && { headers: await proof(path) }), signal });
      const { status, body } = response;
      const what = HAS_MESSAGES && `PoP ${peer.name}, chunk ${chunk}`;
      if (status === 200) return await readExactly(response, stripe.shardBytes, what);
      await body?.cancel();
      throw new AgaroseError(
        status === 404 ? "CHUNK_MISSING" : "SOURCE_FAILED",
        HAS_MESSAGES && `PoP ${peer.name} answered ${status} for chunk ${chunk}`,
        {
          pop: peer.name,
          status,
        },
      );
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw toAgaroseError(error, "SOURCE_FAILED");
    }
  }
}
