/** Type-checks every package against the libraries of the runtime it is for. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { environment, nodePath, root, run } from "./set-up.mjs";

const folders = ["demo", "e2e", "scripts", ...readdirSync(join(root, "packages")).map((name) => `packages/${name}`)];
/** A package whose parts run in different runtimes has a `tsconfig.<runtime>.json` for each further one. */
const projects = folders
  .filter((folder) => existsSync(join(root, folder)))
  .flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => /^tsconfig(\.\w+)?\.json$/.test(name))
      .map((name) => `${folder}/${name}`),
  );
let failed = 0;
for (const project of projects) {
  const code = await run("tsc", ["--noEmit", "-p", project], { env: environment(nodePath()) });
  if (code !== 0) failed++;
}
console.log(`types: ${projects.length - failed} of ${projects.length} projects are sound`);
process.exitCode = failed > 0 ? 1 : 0;
