/**
 * The help of `agarose doctor`.
 */
import type { Command } from "commander";
import { ADMIN_TOKEN_VARIABLE } from "@agarose/storage/pops/admin-token";
import type { DoctorOptions } from "./doctor.ts";

/** Adds `agarose doctor`. */
export function register(program: Command): void {
  program
    .command("doctor")
    .description(
      "check endpoints, credentials, public reads, Range, CORS, clocks, PoPs, signing, and what the layout survives",
    )
    .option("--origin <origin>", "origin of the web app, which CORS is checked for; default any")
    .option("--fix", "make missing buckets, set CORS, and allow public reads of buckets that are not private")
    .option("--dry-run", "with --fix: say what would be done to the buckets, and leave them as they are")
    .option("--deployed", `check deployed PoPs instead; ${ADMIN_TOKEN_VARIABLE} is their ADMIN_TOKEN`)
    .option("--key <key>", "with --deployed: the object to read, where a PoP caches none yet")
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await (await import("./doctor.ts")).doctor(command.optsWithGlobals<DoctorOptions>());
    });
}
