/**
 * `agarose gateway`: an S3 endpoint in front of put and get.
 */
import { once } from "node:events";
import { InvalidArgumentError, type Command } from "commander";
import { AgaroseError } from "@agarose/core";
import type { Credentials } from "@agarose/dev-world/s3-wire";
import { findConfig, loadConfig } from "../../lib/config.ts";
import { openContext, withContext, WRITING, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { consistencyOption } from "../../lib/objects/consistency/consistency-option.ts";
import type { Consistency } from "../../lib/objects/manifests.ts";
import { printResult } from "../../lib/output.ts";
import { BUCKET } from "./exchange.ts";
import { startGateway } from "./server.ts";

interface GatewayCommandOptions extends GlobalOptions {
  readonly port: number;
  readonly host: string;
  readonly spool: number;
  readonly uploads?: string;
  readonly consistency: Consistency;
}

const KEY_ID = "AGAROSE_GATEWAY_ACCESS_KEY_ID";
const SECRET = "AGAROSE_GATEWAY_SECRET_ACCESS_KEY";
const PORT_DEFAULT = 9000;
const GIB = 1024 ** 3;
const SPOOL_GIB_DEFAULT = 16;
/** How long requests that are under way may take once the gateway is to end. */
const GRACE_MS = 30_000;

/** Adds `agarose gateway`. The command ends with exit code 0 on SIGINT and SIGTERM; a second signal ends it at once. */
export function register(program: Command): void {
  program
    .command("gateway")
    .description(
      `serve the objects as an S3 bucket named ${BUCKET}; clients sign with ${KEY_ID} and ${SECRET} of the environment`,
    )
    .option("--port <port>", "port to listen on; 0 for any free one", portOf, PORT_DEFAULT)
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--spool <GiB>", "the most bytes of uploads that wait on disk, in GiB", spoolOf, SPOOL_GIB_DEFAULT)
    .option("--uploads <folder>", "keep multipart uploads here, so that they survive a restart, for a week")
    .addOption(consistencyOption())
    .action((_options: unknown, command: Command) => gateway(command.optsWithGlobals<GatewayCommandOptions>()));
}

async function gateway(options: GatewayCommandOptions): Promise<void> {
  const credentials = credentialsOf(process.env);
  await withContext(options, WRITING, async (context) => {
    const opened: ReturnType<typeof openContext>[] = [];
    const reload = async (): Promise<CommandContext> => {
      const next = openContext(await loadConfig(await findConfig(options.config)), options, WRITING, context.signal);
      opened.push(next);
      return next.context;
    };
    const running = await startGateway({ ...options, spoolBytes: options.spool * GIB, credentials, context, reload });
    printResult(context.json, { url: running.url, bucket: BUCKET }, [`${running.url}  bucket ${BUCKET}`]);
    if (!context.signal.aborted) await once(context.signal, "abort");
    await running.close(GRACE_MS);
    for (const { close } of opened) close();
  });
}

/** The keys of clients. Throws USAGE without them: a gateway is never open to all. */
function credentialsOf(env: NodeJS.ProcessEnv): Credentials {
  const { [KEY_ID]: accessKeyId, [SECRET]: secretAccessKey } = env;
  if (accessKeyId && secretAccessKey) return { accessKeyId, secretAccessKey };
  const absent = accessKeyId ? SECRET : KEY_ID;
  throw new AgaroseError("USAGE", `${absent} is not set: choose the keys that clients of the gateway sign with`);
}

function portOf(value: string): number {
  const port = Number(value);
  if (/^\d+$/.test(value) && port <= 65_535) return port;
  throw new InvalidArgumentError("It must be a whole number from 0 to 65535.");
}

function spoolOf(value: string): number {
  const gib = Number(value);
  if (gib > 0 && gib <= 1_000_000) return gib;
  throw new InvalidArgumentError("It must be a number of GiB above 0.");
}
