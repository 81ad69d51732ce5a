/**
 * `npm run build`: what is deployed or copied, in `dist/`, with its sizes. The service worker's files go to `dist/sw/`,
 * the Worker of a PoP to `dist/worker/`. `wrangler deploy` bundles for itself; the second is to look at and to measure.
 */
import { join } from "node:path";
import { environment, root, run, setUp } from "./set-up.mjs";

const node = setUp();
process.exitCode = await run(node, [join(root, "scripts/release/build-bundles.ts"), join(root, "dist")], {
  env: environment(node),
});
