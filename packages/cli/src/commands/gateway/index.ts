/**
 * The help of `agarose gateway`.
 */
import { InvalidArgumentError, type Command } from "commander";
import { BUCKET, KEY_ID, SECRET } from "./names.ts";
import { consistencyOption } from "../../ui/options.ts";
import type { GatewayCommandOptions } from "./gateway.ts";

const PORT_DEFAULT = 9000;
const SPOOL_GIB_DEFAULT = 16;
/** Adds `agarose gateway`. */
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
    .action(async (_options: unknown, command: Command) =>
      (await import("./gateway.ts")).gateway(command.optsWithGlobals<GatewayCommandOptions>()),
    );
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
