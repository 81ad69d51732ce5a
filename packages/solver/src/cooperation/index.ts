/** The messages of cooperating caches, what the peers hold, and whose turn it is. */
export { CacheEvents, type CacheEventsSettings } from "./cache-events.ts";
export { cacheMessageSchema, type CacheMessage, type CacheStatement } from "./cache-message.ts";
export { NEAREST_MAX, nearestPeers, neighboursOf, peersToMeasure, type PeerDistance } from "./neighbours.ts";
export { ObjectsInCache } from "./objects-in-cache.ts";
export type { PeerMessage, PopularityDigest } from "./peer-message.ts";
export { PeerTable, type PeerRecord } from "./peer-table.ts";
export { NO_PEERS, peerView, type PeerReport, type PeerView, type PeerViewOptions } from "./peer-view.ts";
export { isFirst, nextTurn, type Ticket } from "./turns.ts";
