/** The Worker with a data set that `GET /__points` lists. Miniflare's own drops what it takes. For tests. */
import worker, { type Env } from "../src/index.ts";
import type { DataPoint } from "../src/http/analytics.ts";

export { PeerState, PopState, RequestMonitor } from "../src/index.ts";

const points: DataPoint[] = [];
const ANALYTICS = {
  writeDataPoint(point: DataPoint): void {
    points.push(point);
    if (point.blobs[1] === "404") throw new Error("the platform refuses this point");
  },
};
/** By the real environment: the Worker keeps its memory by it. */
const environments = new WeakMap<Env, Env>();

export default {
  fetch(request, env, context) {
    if (new URL(request.url).pathname === "/__points") return Response.json(points);
    const own = environments.get(env) ?? { ...env, ANALYTICS };
    environments.set(env, own);
    return worker.fetch(request, own, context);
  },
} satisfies ExportedHandler<Env>;
