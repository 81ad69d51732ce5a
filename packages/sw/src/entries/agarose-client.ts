/** `agarose-client.js`: reads without a service worker, for pages without a bundler. */
export { createClient, type ClientOptions } from "../page/client.ts";
export { errorOf } from "../page/agarose.ts";
