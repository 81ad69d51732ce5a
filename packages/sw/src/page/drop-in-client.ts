/** `agarose-client.js`: reads without a service worker, for pages without a bundler. */
export { createClient, type ClientOptions } from "./client.ts";
export { errorOf } from "./agarose.ts";
