/** `agarose pop`: one PoP on this machine, with its chunk cache on disk and its state in SQLite. */
import { existsSync } from "node:fs";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { startPop } from "@agarose/pop";
import { stopSignal } from "@agarose/pop/stop-signal";
import { loadConfig } from "@agarose/storage/config/config";
import { PopClient } from "@agarose/storage/pops/pop-client";
import { configPath } from "../../lib/config-path.ts";
import { EXIT_OK, printResult } from "../../ui/output.ts";
import { readVariables } from "./variables.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose pop`. The command runs until a signal, or rejects with CONFIG_INVALID before it listens. */
export async function pop({ name, ...options }: Values<typeof args>): Promise<number> {
  const stop = stopSignal();
  const { host, port } = options.listen;
  const path = configPath(options.config);
  // Without a configuration the variables say everything; one that was named must be there.
  const config = options.config === undefined && !existsSync(path) ? undefined : await loadConfig(path);
  const variables = await readVariables({ name, file: options.vars, config, environment: process.env });
  const running = await startPop({
    variables,
    folder: options.data,
    host,
    port,
    behindProxy: options.behindProxy ?? false,
  });
  try {
    await checkHealth(running.url, variables["POP"] ?? "");
    printResult(options, { ok: true, pop: variables["POP"], url: running.url, pid: process.pid }, [
      `PoP ${variables["POP"]} listens on ${running.url}; Ctrl-C ends it`,
    ]);
    await stop.asked;
  } finally {
    await running.close();
  }
  return EXIT_OK;
}

/** Throws CONFIG_INVALID with what the PoP itself finds wrong with its variables. */
async function checkHealth(url: string, name: string): Promise<void> {
  await new PopClient({ name, url }).health().catch((error: unknown) => {
    const { message, details } = toAgaroseError(error);
    throw new AgaroseError("CONFIG_INVALID", String(details["reason"] ?? message), undefined, error);
  });
}
