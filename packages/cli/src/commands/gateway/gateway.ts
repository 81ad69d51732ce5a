/** `agarose gateway`: an S3 endpoint in front of put and get. */
import { once } from "node:events";
import { AgaroseError } from "@agarose/core";
import type { KeyPair } from "@agarose/s3-server";
import { lockFolder } from "@agarose/pop";
import { BUCKET } from "@agarose/storage/gateway/bucket";
import { startGateway } from "@agarose/storage/gateway/gateway";
import type { RepairOutcome } from "@agarose/storage/repair/repair-outcome";
import { loadConfig } from "@agarose/storage/config/config";
import { configPath } from "../../lib/config-path.ts";
import { withContext, WRITING } from "../../lib/context.ts";
import { closeParts, openParts, type DeploymentParts } from "@agarose/storage/parts";
import { logLine, printResult } from "../../ui/output.ts";
import { repairLines } from "../../ui/verdict-lines.ts";
import { followKeyPairs, readKeyPairs } from "./key-pairs.ts";
import type { Values } from "../../command.ts";
import { KEY_ID, SECRET, type args } from "./index.ts";

/** How long requests that are under way may take once the gateway is to end. */
const GRACE_MS = 30_000;

/** Runs `agarose gateway`. The command ends with exit code 0 on SIGINT and SIGTERM; a second signal ends it at once. */
export async function gateway(options: Values<typeof args>): Promise<void> {
  const pairs =
    options.keys === undefined ? ([pairOf(process.env)] satisfies [KeyPair]) : await readKeyPairs(options.keys);
  await withContext(options, WRITING, async (context) => {
    const opened: DeploymentParts[] = [];
    const reload = async (): Promise<DeploymentParts> => {
      const next = openParts(await loadConfig(configPath(options.config)), WRITING, context.signal);
      opened.push(next);
      return next;
    };
    const log = (repaired: RepairOutcome): void => {
      if (!context.quiet) repairLines(repaired).forEach(logLine);
    };
    if (options.keys !== undefined) {
      followKeyPairs(options.keys, pairs, context.signal, ({ message }) =>
        logLine(`warning: the pairs of keys stay as they were: ${message}`),
      );
    }
    const running = await startGateway({
      ...options,
      ...options.listen,
      uploads: options.uploads === undefined ? undefined : { dir: options.uploads, lock: lockFolder },
      spoolBytes: options.spool,
      pairs,
      context,
      reload,
      onRepaired: options.repair ? log : undefined,
    });
    printResult(context, { url: running.url, bucket: BUCKET }, [`${running.url}  bucket ${BUCKET}`]);
    if (!context.signal.aborted) await once(context.signal, "abort");
    await running.close(GRACE_MS);
    for (const deployment of opened) closeParts(deployment);
  });
}

/** The pair of keys in the environment. Throws USAGE without it: a gateway is never open to all. */
function pairOf({ [KEY_ID]: accessKeyId, [SECRET]: secretAccessKey }: NodeJS.ProcessEnv): KeyPair {
  if (accessKeyId && secretAccessKey) return { accessKeyId, secretAccessKey };
  const absent = accessKeyId ? SECRET : KEY_ID;
  throw new AgaroseError("USAGE", `${absent} is not set: choose the keys that clients of the gateway sign with`);
}
