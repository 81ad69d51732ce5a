/** The page's side of Agarose: registers the service worker, reads objects, and listens to reads. */
export { register, type RegisterOptions } from "./page/register.ts";
export { createClient, type ClientOptions } from "./page/client.ts";
export { errorOf, type Agarose, type FetchOptions, type KeySelection } from "./page/agarose.ts";
export { unregister } from "./page/unregister.ts";
export type { ClientConfig, ClientConfigInput, Endpoint } from "./common/config.ts";
export type { PlanEvent, ReadEndEvent, ReadEvent, ReadStartEvent, RequestEvent } from "./events/read-events.ts";
export type { WorkerMessage } from "./common/messages.ts";
