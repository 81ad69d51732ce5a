/** The page's side of Agarose: registers the service worker, reads objects, and listens to reads. */
export { createClient, fetchObject, type FetchObjectOptions } from "./fetch-object.ts";
export { logReads } from "./log-reads.ts";
export { onRead } from "./on-read.ts";
export { preload, purge, update } from "./tell-worker.ts";
export { VERSION } from "./worker-file.ts";
export { register, WORKER_URL_DEFAULT, type RegisterOptions } from "./register.ts";
export { unregister } from "./unregister.ts";
export { parseConfig, type ClientConfig, type ClientConfigInput, type Endpoint } from "./config.ts";
export { CHANNEL, isReadEvent } from "./read-events.ts";
export type { PlanEvent, ReadEndEvent, ReadEvent, ReadStartEvent, RequestEvent } from "./read-events.ts";
export { summarized, totalsOf, type ReadSummary, type ReadTotals } from "./read-summary.ts";
export type { WorkerMessage } from "./life-cycle.ts";
export type { ObjectClient } from "./object-client.ts";
