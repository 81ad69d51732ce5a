/** `npm start`: sets up what is missing and runs `agarose dev`. */
import { join } from "node:path";
import { environment, root, run, setUp } from "./set-up.mjs";

const node = setUp();
const cli = join(root, "packages/cli/bin/agarose.js");
process.exitCode = await run(node, [cli, "dev", ...process.argv.slice(2)], { env: environment(node) });
