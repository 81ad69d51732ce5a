/**
 * `agarose doctor`: checks the configuration against the world.
 */
import type { Command } from "commander";
import { ADMIN_TOKEN_VARIABLE } from "../../lib/admin-token.ts";
import { findConfig, loadConfig, type Config } from "../../lib/config.ts";
import { withContext, WRITING, type GlobalOptions } from "../../lib/context.ts";
import { isFailed, type Check } from "./check.ts";
import { checkDeployed } from "./check-deployed.ts";
import { checkLayout } from "./check-layout.ts";
import { checkSigning } from "./check-signing.ts";
import { checkRegion } from "./check-region.ts";
import { EXIT_FAILED, EXIT_OK, printResult } from "../../lib/output.ts";

interface DoctorOptions extends GlobalOptions {
  readonly origin?: string;
  readonly deployed?: boolean;
  readonly key?: string;
}

const POP_TIMEOUT_MS = 10_000;
const MARKS = { ok: "ok  ", warn: "WARN", fail: "FAIL" } as const;

/** Adds `agarose doctor`. The command exits with 1 when a check fails, and with 0 when there are warnings alone. */
export function register(program: Command): void {
  program
    .command("doctor")
    .description(
      "check endpoints, credentials, public reads, Range, CORS, clocks, PoPs, signing, and what the layout survives",
    )
    .option("--origin <origin>", "origin of the web app, which CORS is checked for; default any")
    .option("--deployed", `check deployed PoPs instead; ${ADMIN_TOKEN_VARIABLE} is their ADMIN_TOKEN`)
    .option("--key <key>", "with --deployed: the object to read, where a PoP caches none yet")
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await doctor(command.optsWithGlobals<DoctorOptions>());
    });
}

async function doctor(options: DoctorOptions): Promise<number> {
  if (options.deployed) {
    const config = await loadConfig(await findConfig(options.config));
    const key = options.key === undefined ? {} : { key: options.key };
    return report(await checkDeployed(config, { fetch, nowMs: Date.now, ...key }), options.json ?? false);
  }
  return withContext(options, { ...WRITING, attempts: 1 }, async ({ config, stores, json, signal }) => {
    const regionOptions = { ...(options.origin && { origin: options.origin }), fetch, nowMs: Date.now, signal };
    const found = await Promise.all([
      Promise.resolve(checkLayout(config)),
      checkSigning(config),
      ...stores.map((store) => checkRegion(store, regionOptions)),
      checkPops(config.pops, signal),
    ]);
    return report([...refusedEverywhere(found.flat(), config), ...found.flat()], json);
  });
}

function report(checks: readonly Check[], json: boolean): number {
  const failed = checks.filter(isFailed).length;
  const lines = checks.map(({ subject, name, state, message }) => `${MARKS[state]}  ${subject}: ${name}: ${message}`);
  printResult(json, { ok: failed === 0, checks }, [...lines, `${checks.length} checks, ${failed} failed`]);
  return failed === 0 ? EXIT_OK : EXIT_FAILED;
}

/** One plain sentence when no region takes its keys: then the keys are wrong, and nothing else was checked. */
function refusedEverywhere(checks: readonly Check[], { regions }: Config): Check[] {
  const refused = checks.filter(
    ({ name, message }) => name === "credentials" && message.startsWith("CREDENTIALS_REFUSED"),
  );
  if (refused.length < regions.length) return [];
  const message =
    `all ${regions.length} regions refused their keys, so nothing else was checked: check where the keys come from, ` +
    "that they are not expired, and the clock of this machine";
  return [{ subject: "configuration", name: "credentials", state: "fail", message }];
}

function checkPops(pops: Config["pops"], signal: AbortSignal): Promise<Check[]> {
  return Promise.all(
    pops.map(async ({ name, url }): Promise<Check> => {
      const check = { subject: name, name: "health" };
      try {
        const timeout = AbortSignal.any([signal, AbortSignal.timeout(POP_TIMEOUT_MS)]);
        const response = await fetch(`${url}/healthz`, { signal: timeout });
        await response.body?.cancel();
        if (response.ok) return { ...check, state: "ok", message: `${url} answers` };
        return {
          ...check,
          state: "fail",
          message: `${url}/healthz answers ${response.status}: deploy the Worker again`,
        };
      } catch (error) {
        signal.throwIfAborted();
        return {
          ...check,
          state: "fail",
          message: `${url} does not answer (${(error as Error).message}): check its url`,
        };
      }
    }),
  );
}
