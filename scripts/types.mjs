/** `npm run types [-- FOLDER…]`: type-checks every package against the libraries of the runtime it is for. */
import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { environment, nodePath, root, run } from "./set-up.mjs";

const all = ["demo", "e2e", "scripts", ...readdirSync(join(root, "packages")).map((name) => `packages/${name}`)];
const asked = process.argv.slice(2);
/** A package whose parts run in different runtimes has a `tsconfig.<runtime>.json` for each further one. */
const projects = all
  .filter((folder) => existsSync(join(root, folder)) && (asked.length === 0 || asked.includes(folder)))
  .flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => /^tsconfig(\.\w+)?\.json$/.test(name))
      .map((name) => `${folder}/${name}`),
  );
const env = environment(nodePath());
const waiting = [...projects];
let failed = 0;

/** A compiler with several threads checks what they share in each of them, so one per core is faster. */
async function work() {
  for (let project = waiting.shift(); project; project = waiting.shift()) {
    if ((await run("tsc", ["--noEmit", "--singleThreaded", "-p", project], { env })) !== 0) failed++;
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, work));
console.log(`types: ${projects.length - failed} of ${projects.length} projects are sound`);
process.exitCode = failed > 0 ? 1 : 0;
