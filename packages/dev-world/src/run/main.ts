/** A world in its own process, for `LocalWorld`: the argument is its `RunOptions` as JSON. */
import { toAgaroseError } from "@agarose/core";
import { runWorld, type RunOptions } from "./run-world.ts";

try {
  await runWorld({ ...(JSON.parse(process.argv[2]!) as RunOptions), json: true });
} catch (error) {
  const { code, message } = toAgaroseError(error);
  process.stderr.write(`${code}: ${message}\n`);
  process.exitCode = 1;
}
