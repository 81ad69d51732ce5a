/** `npm run pack`: every package as it is published, in `dist/npm/`: a folder to look at, and the tarball for npm. */
import { join } from "node:path";
import { environment, root, run, setUp } from "./set-up.mjs";

const node = setUp();
process.exitCode = await run(node, [join(root, "scripts/packages.ts"), join(root, "dist/npm")], {
  env: environment(node),
});
