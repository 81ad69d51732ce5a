/** Opens the deployment of a command, and closes it when the command ends. */
import { loadConfig, type Config } from "@agarose/storage/config/config";
import { configPath } from "./config-path.ts";
import type { Shard } from "@agarose/storage/listing/shard";
import { closeParts, openParts, type DeploymentParts } from "@agarose/storage/parts";
import type { S3StoreOptions } from "@agarose/storage/buckets/s3-client";
import type { GlobalOptions } from "../command.ts";
import type { OutputOptions } from "../ui/output.ts";
import { reportWalk, type ReportOptions, type ReportStream } from "../ui/report-stream.ts";

export type { GlobalOptions };

/** Options with which a command opens its deployment. */
interface OpenOptions extends GlobalOptions {
  readonly shard?: Shard | undefined;
}

/**
 * The argument of a command's action in `withContext`. Its signal aborts on Ctrl-C and SIGTERM, to remove what is
 * half-written.
 */
export interface CommandContext extends DeploymentParts, OutputOptions {}

/** For readers, which ask another region instead of the same one again. */
export const READING: S3StoreOptions = { attempts: 1 };
/** For writers. */
export const WRITING: S3StoreOptions = { attempts: 3 };

/** Loads the configuration, runs `action` with its buckets open, and closes them. */
export async function withContext<T>(
  options: OpenOptions,
  storeOptions: S3StoreOptions,
  action: (context: CommandContext) => Promise<T>,
): Promise<T> {
  return withConfig(await loadConfig(configPath(options.config)), options, storeOptions, action);
}

/** `withContext` for a walk: `reportWalk` prints what it reports, and returns its exit code. */
export function withReport(
  options: OpenOptions & ReportOptions,
  storeOptions: S3StoreOptions,
  walk: (report: ReportStream, context: CommandContext) => Promise<number>,
  name?: string,
): Promise<number> {
  return withContext(options, storeOptions, (context) => reportWalk(options, (report) => walk(report, context), name));
}

/** `withContext` for a configuration that no file has. */
export async function withConfig<T>(
  config: Config,
  options: OpenOptions,
  storeOptions: S3StoreOptions,
  action: (context: CommandContext) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const context = {
    ...openParts(config, storeOptions, abort.signal, { shard: options.shard }),
    json: options.json ?? false,
    quiet: options.quiet ?? false,
  };
  const onSignal = (): void => abort.abort(new DOMException("interrupted", "AbortError"));
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  try {
    return await action(context);
  } finally {
    process.removeListener("SIGINT", onSignal);
    process.removeListener("SIGTERM", onSignal);
    closeParts(context);
  }
}
