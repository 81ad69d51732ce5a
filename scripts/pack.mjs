/**
 * `npm run pack`: every package as it is published, in `dist/npm/`: a folder to look at, and the tarball for npm.
 * `npm run pack -- --sizes` also writes their sizes into docs/reference/versions.md.
 */
import { join } from "node:path";
import { environment, root, run, setUp } from "./set-up.mjs";

const node = setUp();
process.exitCode = await run(
  node,
  [join(root, "scripts/release/packages.ts"), join(root, "dist/npm"), ...process.argv.slice(2)],
  { env: environment(node) },
);
