/**
 * `@agarose/sw/testing`: the client engine, for tests of other packages that read without a browser. It is never
 * published: `package.json` leaves this folder out of `files`.
 */
export { ObjectClient } from "../src/client/object-client.ts";
export type { FullPlan } from "../src/client/plans/bundle-request.ts";
export { withSignatures } from "../src/client/plans/find-plan.ts";
export { BATCH_MS } from "../src/client/telemetry.ts";
export { AgaroseStrategy } from "../src/worker/strategy.ts";
