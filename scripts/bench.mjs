/** `npm run bench [-- name…] [--quick]`: sets up what is missing and runs the measurements of e2e/bench. */
import { join } from "node:path";
import { environment, root, run, setUp } from "./set-up.mjs";

const node = setUp();
// Imported only now: it needs what the set-up installs.
const { ensureBrowser } = await import("./browser.mjs");
const browser = await ensureBrowser();
const env = { ...environment(node), ...(browser && { CHROMIUM_PATH: browser }) };
process.exitCode = await run(node, [join(root, "e2e/bench/main.ts"), ...process.argv.slice(2)], { env });
