/**
 * `@agarose/sw/testing`: the client engine, for tests of other packages that read without a browser. It is never
 * published: `package.json` leaves this folder out of `files`.
 */
import { ObjectClient } from "../src/client/object-client.ts";
import { handleBy, type Handle } from "../src/client/handle.ts";

export { parseConfig } from "../src/common/config.ts";
export { ObjectClient };
export type { FullPlan } from "../src/client/plans/bundle-request.ts";
export { withSignatures } from "../src/client/plans/plan-source.ts";

/** The responses of a worker at `https://app.test/` to requests for objects below `/ec/`. */
export function handleOf(client: ObjectClient): Handle {
  const routes = { origin: "https://app.test", prefix: "/ec/", navigations: false };
  return handleBy((request, onEnd) => client.answer(request, onEnd), routes);
}
