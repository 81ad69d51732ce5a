/**
 * The control address of the local world: faults, the client's place, the Cron Trigger and the log, over HTTP.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { AgaroseError, errorAnswer } from "@agarose/core";
import * as v from "valibot";
import { popLatencyMs } from "../world/geography.ts";
import type { World } from "../world/world.ts";

const probability = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
const factor = v.pipe(v.number(), v.minValue(0));

const RegionChange = v.strictObject({
  down: v.optional(v.boolean()),
  latencyFactor: v.optional(factor),
  stragglers: v.optional(v.strictObject({ probability, factor })),
  errorRate: v.optional(probability),
  corrupt: v.optional(probability),
  truncate: v.optional(probability),
});
const PopChange = v.strictObject({
  down: v.optional(v.boolean()),
  kv: v.optional(v.picklist(["ok", "down", "slow", "stale"])),
});
const ClientChange = v.strictObject({ near: v.string() });

export async function startControl(world: World): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    answer(world, request, response).catch((error: unknown) => {
      const { status, headers, body } = errorAnswer(error);
      response.writeHead(status, { ...headers, "access-control-allow-origin": "*" }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(world: World, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const cors = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "*",
  };
  if (request.method === "OPTIONS") {
    response.writeHead(204, cors).end();
    return;
  }
  const { pathname } = new URL(request.url ?? "/", "http://control");
  const result = await route(world, request.method ?? "GET", pathname.split("/").slice(1), request);
  response.writeHead(200, { ...cors, "content-type": "application/json" }).end(`${JSON.stringify(result)}\n`);
}

async function route(world: World, method: string, path: string[], request: IncomingMessage): Promise<unknown> {
  const [what, name] = path;
  const { regions, pops } = world.options.geography;
  switch (`${method} ${what}`) {
    case "GET state":
      return stateOf(world);
    case "GET log":
      return { records: world.log };
    case "POST regions":
      world.setRegionFaults(known(regions, name, "region"), defined(await bodyOf(request, RegionChange)));
      return stateOf(world);
    case "POST pops":
      await world.setPop(known(pops, name, "PoP"), defined(await bodyOf(request, PopChange)));
      return stateOf(world);
    case "POST client":
      world.moveClient(known(pops, (await bodyOf(request, ClientChange)).near, "PoP"));
      return stateOf(world);
    case "POST cron":
      await world.cron();
      return { ok: true };
    case "POST reset":
      await world.reset();
      return stateOf(world);
    default:
      throw new AgaroseError("REQUEST_INVALID", `${method} /${path.join("/")} is not a control route`, {
        method,
        path,
      });
  }
}

async function stateOf(world: World): Promise<object> {
  const { near, regionFaults, pops } = world.state;
  const { code, scale, s3, geography } = world.options;
  return {
    client: { near },
    regions: world.regions.map(({ name }) => ({
      name,
      ...regionFaults[name],
      latencyMs: geography.regionLatencyMs[near]![name]! * scale,
    })),
    pops: await Promise.all(
      world.pops.map(async ({ name, url }) => ({
        name,
        url,
        ...pops[name],
        kvFired: await world.kvFaultsFired(name),
        latencyMs: popLatencyMs(geography, near, name) * scale,
      })),
    ),
    cronRuns: world.cronRuns,
    code,
    scale,
    s3,
  };
}

function known(names: readonly string[], name: string | undefined, what: string): string {
  const found = names.find((candidate) => candidate === name);
  if (found) return found;
  throw new AgaroseError("REQUEST_INVALID", `no ${what} ${JSON.stringify(name)}: there are ${names.join(", ")}`, {
    name,
  });
}

async function bodyOf<S extends v.GenericSchema>(request: IncomingMessage, schema: S): Promise<v.InferOutput<S>> {
  let text = "";
  for await (const part of request) {
    text += String(part);
    if (text.length > 10_000) throw new AgaroseError("REQUEST_INVALID", "the request's body is over 10,000 characters");
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new AgaroseError("REQUEST_INVALID", "the request's body is not JSON", {}, error);
  }
  const result = v.safeParse(schema, json);
  if (result.success) return result.output;
  const { expected, message } = result.issues[0];
  const field = v.getDotPath(result.issues[0]) ?? "the request's body";
  const problem = expected === "never" ? "is not a field of this route" : `is wrong: ${message}`;
  throw new AgaroseError("REQUEST_INVALID", `${field} ${problem}`, { field });
}

/** Without the fields that were left out, which must not overwrite what holds. */
function defined<T extends object>(change: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as never;
}
