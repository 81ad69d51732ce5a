/** The page's side of Agarose: registers the service worker, reads objects, and listens to reads. */
export { createClient, fetchObject, type FetchObjectOptions } from "./page/fetch-object.ts";
export { resumingFetch } from "./page/resuming-fetch.ts";
export { logReads } from "./page/log-reads.ts";
export { onRead } from "./page/on-read.ts";
export { preload, purge, update } from "./page/worker-messages.ts";
export { VERSION } from "./page/worker-file.ts";
export { register, WORKER_URL_DEFAULT, type RegisterOptions } from "./page/register.ts";
export { unregister } from "./page/unregister.ts";
export { parseConfig, type ClientConfig, type ClientConfigInput, type Endpoint } from "./common/config.ts";
export { CHANNEL, isReadEvent } from "./events/read-events.ts";
export type { PlanEvent, ReadEndEvent, ReadEvent, ReadStartEvent, RequestEvent } from "./events/read-events.ts";
export { summarized, totalsOf, type ReadSummary, type ReadTotals } from "./events/read-summary.ts";
export type { WorkerMessage } from "./common/messages.ts";
export type { ObjectClient } from "./client/object-client.ts";
