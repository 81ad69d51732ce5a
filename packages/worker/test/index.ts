/**
 * `@agarose/worker/testing`: buckets, objects and a platform with limits, for tests of other packages. It is never
 * published: `package.json` leaves this folder out of `files`.
 */
import { fileURLToPath } from "node:url";

export { startBuckets, type BucketServer } from "./bucket-server.ts";
export { putObject, randomBytes, REGIONS } from "./objects.ts";
export { parseExposition, type Metric } from "./prometheus.ts";
export { openRequest } from "./tcp-client.ts";

/** Entry of a Worker that enforces what workerd does not, and breaks Cloudflare's services on demand. */
export const LIMITED_WORKER = fileURLToPath(new URL("platform/limits.worker.ts", import.meta.url));
