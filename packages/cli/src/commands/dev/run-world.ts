/** `agarose dev`: runs a local world with the page that the project has for it. */
import { readFile } from "node:fs/promises";
import { runWorld } from "@agarose/dev-world/run";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";
import { jsonIn } from "@agarose/storage/config/json";

/** Runs `agarose dev`. The command ends with exit code 0 on SIGINT, SIGTERM, or when its starter is gone. */
export async function run({
  demo,
  var: variables,
  cron,
  jitter,
  mbit,
  ...options
}: Values<typeof args>): Promise<void> {
  const page = { demo: await ownDemo(), page: demo };
  const links = { jitterSigma: jitter, mbitPerSecond: mbit };
  await runWorld({ ...options, ...page, ...links, popVars: Object.fromEntries(variables), cronMs: cron });
}

/** The module that package.json of the working directory names as `agarose.demo`, as the repository does. */
async function ownDemo(): Promise<string | undefined> {
  const text = await readFile("package.json", "utf8").catch(() => "{}");
  return (jsonIn(text) as { agarose?: { demo?: string } } | null | undefined)?.agarose?.demo;
}
