/**
 * The help of `agarose dev`.
 */
import { InvalidArgumentError, type Command } from "commander";
import { WORLD_DEFAULTS, type WorldOptions } from "@agarose/dev-world/options";
import type { DevOptions } from "./run-world.ts";

/** Adds `agarose dev`. */
export function register(program: Command): void {
  program
    .command("dev")
    .description("run a local world: buckets over an emulated WAN, PoPs in workerd, the demo page")
    .option("--scenario <file>", "places, latencies, code and cache of a scenario (JSON) instead of Agar's Table I")
    .option(
      "--code <k+m>",
      `data and parity chunks of an object, or auto (default: ${codeText(WORLD_DEFAULTS.code)})`,
      code,
    )
    .option("--s3 <server>", "S3 server behind the links: embedded or versitygw", s3Server, WORLD_DEFAULTS.s3)
    .option(
      "--scale <factor>",
      `latencies as a multiple (default: ${WORLD_DEFAULTS.scale}; 1 with --scenario)`,
      number(0),
    )
    .option("--jitter <sigma>", `lognormal spread of every latency (default: ${WORLD_DEFAULTS.jitterSigma})`, number(0))
    .option(
      "--mbit <rate>",
      `Mbit/s of one transfer, 0 for unlimited (default: ${WORLD_DEFAULTS.mbitPerSecond})`,
      number(0),
    )
    .option("--seed <number>", "seed of the links' randomness", number(0), WORLD_DEFAULTS.seed)
    .option(
      "--cache-bytes <bytes>",
      `capacity of each PoP's chunk cache (default: ${WORLD_DEFAULTS.cacheBytes})`,
      number(0),
    )
    .option("--var <NAME=value>", "variable of every PoP, as in wrangler.toml; may be repeated", variable)
    .option("--pops <runtimes>", "what runs each PoP, in their order: workerd or node, with commas", runtimes)
    .option("--no-peers", "start PoPs that are not each other's peers")
    .option("--cron <seconds>", "how often the Cron Trigger fires, 0 for only on request", number(0), 60)
    .option("--port <port>", "port of the page, 0 for any free one", number(0), 0)
    .option("--no-samples", "start with empty buckets")
    .option("--no-demo", "start without the demo page")
    .option(
      "--app [folder or URL]",
      "serve this app (default: a blank page) instead of the demo page, with the world's addresses in its agarose.json",
    )
    .option("--detached", "keep running when the process that started it has ended")
    .action(async (_options: unknown, command: Command) =>
      (await import("./run-world.ts")).run(command.optsWithGlobals<DevOptions>()),
    );
}

function codeText(given: WorldOptions["code"]): string {
  return given === "auto" ? given : `${given.k}+${given.m}`;
}

function code(text: string): WorldOptions["code"] {
  if (text === "auto") return text;
  const [, k, m] = /^([1-9]\d{0,2})\+(\d{1,3})$/.exec(text) ?? [];
  if (k === undefined || m === undefined) throw new InvalidArgumentError("use auto, or k+m, such as 4+2");
  return { k: Number(k), m: Number(m) };
}

function runtimes(text: string): readonly ("workerd" | "node")[] {
  const names = text.split(",");
  if (names.every((name) => name === "workerd" || name === "node")) return names;
  throw new InvalidArgumentError("use workerd and node, such as workerd,workerd,node");
}

function s3Server(value: string): "embedded" | "versitygw" {
  if (value === "embedded" || value === "versitygw") return value;
  throw new InvalidArgumentError("use embedded or versitygw");
}

function variable(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^([A-Z][A-Z0-9_]*)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("use NAME=value");
  return { ...before, [name]: value };
}

function number(min: number): (value: string) => number {
  return (value) => {
    const parsed = Number(value);
    if (value.trim() !== "" && Number.isFinite(parsed) && parsed >= min) return parsed;
    throw new InvalidArgumentError(`use a number of ${min} or more`);
  };
}
