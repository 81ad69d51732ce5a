/** `agarose.js`: the page's side of pages without a bundler, which read through the service worker. */
export { register, type RegisterOptions } from "./register.ts";
export { errorOf, type Agarose, type FetchOptions, type KeySelection } from "./agarose.ts";
export { unregister } from "./unregister.ts";
export type { ClientConfig, ClientConfigInput, Endpoint } from "../common/config.ts";
export type { PlanEvent, ReadEndEvent, ReadEvent, ReadStartEvent, RequestEvent } from "../events/read-events.ts";
