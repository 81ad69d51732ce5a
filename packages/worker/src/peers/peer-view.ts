/**
 * What a PoP plans by when it has peers (Agar, ICDCS'17, section VI): chunks in their caches are further sources, and what
 * they read from here is worth caching for.
 */
/** A chunk in a peer's cache: what it takes to get it from there. */
export interface PeerChunk {
  readonly chunk: number;
  readonly pop: string;
  readonly meanMs: number;
  readonly sdMs: number;
}

/** What must be known of an object to say how peers read it. */
export interface PlacedObject {
  readonly key: string;
  readonly version: string;
  readonly k: number;
  /** Region of each stored chunk. */
  readonly placement: readonly string[];
  /** Bytes of one chunk in the longest stripe. */
  readonly shardBytes: number;
}

export interface PeerView {
  /** What reachable peers hold of a version, or are about to. Two peers may hold the same chunk. */
  chunksOf(version: string): readonly PeerChunk[];
  /** Requests per period of all peers together, by key, most first: worth caching for even where nobody asks here. */
  readonly requests: ReadonlyMap<string, number>;
  /**
   * Milliseconds x requests per period that all peers together save when this PoP caches exactly `chunks` of an object,
   * against it caching none of them: to be added to the value of the caching option.
   */
  savedAtPeers(object: PlacedObject, chunks: readonly number[]): number;
}

/** The view of a PoP without peers, and of one that reaches none. */
export const NO_PEERS: PeerView = { chunksOf: () => [], requests: new Map(), savedAtPeers: () => 0 };
