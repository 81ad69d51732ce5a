import { AgaroseError } from "@agarose/core";
import { WORLD_DEFAULTS, WORLDS, type WorldName } from "@agarose/dev-world/options";
import { choice, defineCommand, flag, negatedFlag, option, repeatable, valued } from "../../command.ts";
import { parseDuration, parseSize } from "@agarose/storage/maintenance/amounts";
import { parseCode, parseNumber, parsePort } from "../../ui/units.ts";

const { jitterSigma, mbitPerSecond, lineMbit, cacheBytes, seed } = WORLD_DEFAULTS;

/** Its arguments and options. */
export const args = {
  world: choice("continental: six providers of one continent; agar: the six regions and 9+3 of the paper", [
    "continental",
    "agar",
  ] satisfies readonly WorldName[]),
  scenario: option("<file>", "places, latencies, code and cache of a scenario (JSON) instead"),
  code: option("<k+m>", "data and parity chunks of an object, or auto (default: auto; 9+3 in agar)", {
    parse: parseCode,
  }),
  s3: choice("S3 server behind the links", ["embedded", "versitygw"]),
  scale: option("<factor>", `latencies as a multiple (default: 1; ${WORLDS.agar.scale} in agar)`, {
    parse: parseNumber(),
  }),
  jitter: option("<sigma>", `lognormal spread of every latency (default: ${jitterSigma})`, { parse: parseNumber() }),
  mbit: option("<rate>", `Mbit/s of one transfer, 0 for unlimited (default: ${mbitPerSecond})`, {
    parse: parseNumber(),
  }),
  lineMbit: option(
    "<rate>",
    `Mbit/s that the client's downloads share, 0 for unlimited (default: ${lineMbit}; 0 in agar)`,
    {
      parse: parseNumber(),
    },
  ),
  seed: valued("<number>", "seed of the links' randomness", { parse: parseNumber(), default: String(seed) }),
  cacheBytes: option("<size>", `capacity of each PoP's chunk cache (default: ${cacheBytes} bytes)`, {
    parse: parseSize,
  }),
  var: repeatable("<NAME=value>", "variable of every PoP, as in wrangler.toml; repeatable", {
    parse: parseVariable,
  }),
  runtimes: option("<names>", "runtime of each PoP, in their order, separated by commas: workerd or node", {
    parse: parseRuntimes,
  }),
  peers: negatedFlag("do not connect the PoPs as peers"),
  cron: valued("<duration>", "how often the Cron Trigger fires, 0 for only on request", {
    parse: parseDuration({ min: 0 }),
    default: "60s",
  }),
  port: valued("<port>", "port of the page, 0 for any free one", { parse: parsePort, default: "0" }),
  samples: negatedFlag("start with empty buckets"),
  demo: negatedFlag("start without the demo page"),
  app: option<string | true>(
    "[folder or URL]",
    "serve this app (default: a blank page) instead of the demo page, with the world's addresses in its agarose.json",
  ),
  background: flag("keep running when the process that started it has ended"),
};

/** `agarose dev`. */
export const command = defineCommand({
  name: "dev",
  category: "Servers",
  description: "run a local world: buckets over an emulated WAN, PoPs in workerd, the demo page",
  summary: "run a local world of buckets and PoPs",
  examples: [
    ["dev", "start the world and its page"],
    ["dev --app public --scale 1", "serve your own app, with latencies as they are"],
    ["dev --json --no-demo --cron 0", "start a world for a test"],
  ],
  args,
  withoutConfig: true,
  run: async (values) => (await import("./run-world.ts")).run(values),
});

function parseRuntimes(text: string): readonly ("workerd" | "node")[] {
  const names = text.split(",");
  if (names.every((name) => name === "workerd" || name === "node")) return names;
  throw new AgaroseError("USAGE", `${text} is wrong: use workerd and node, such as workerd,workerd,node`);
}

function parseVariable(text: string): readonly [string, string] {
  const [, name, value] = /^([A-Z][A-Z0-9_]*)=(.*)$/s.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return [name, value];
  throw new AgaroseError("USAGE", `${text} is not NAME=value`);
}
