/** The routes of the control address. `GET /` lists this table. */
import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { AgaroseError } from "@agarose/core";
import { HEADERS_ALLOWED, objectUrl } from "@agarose/core/format";
import { keyOfPath } from "@agarose/core/http";
import { popLatencyMs } from "../world/geography.ts";
import type { Uploader } from "../world/uploader.ts";
import type { World } from "../world/world.ts";
import { ClientChange, PopChange, readChange, RegionChange } from "./changes.ts";

/** Dependencies of the routes. */
export interface ControlContext extends Pick<Uploader, "put" | "copy"> {
  readonly world: World;
}

/** One route. */
export interface Route {
  readonly method: "GET" | "POST" | "PUT";
  /** NAME and KEY match any text, KEY with slashes. */
  readonly path: string;
  readonly does: string;
  /** Fields of the JSON body; all are optional unless the text says otherwise. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Resolves to the answer, or to undefined for the state of the world. */
  readonly handle: (context: ControlContext, name: string, request: IncomingMessage) => unknown;
}

/** Every route, in the order in which `GET /` lists them. */
export const ROUTES: readonly Route[] = [
  { method: "GET", path: "/", does: "lists the routes", handle: listRoutes },
  {
    method: "GET",
    path: "/state",
    does: "returns the client's place, the faults and latencies of every region and PoP, and the latest cron runs",
    handle: () => undefined,
  },
  {
    method: "GET",
    path: "/status",
    does: "returns what every PoP answers at /v1/status: its cache, what its ideas save, and its spending",
    async handle({ world }) {
      return { pops: await world.popStatuses() };
    },
  },
  {
    method: "GET",
    path: "/log",
    does: "returns the requests over all links since the last reset: from, to, method, path, delayMs, status, outcome",
    handle: ({ world }) => ({ records: world.log }),
  },
  {
    method: "POST",
    path: "/regions/NAME",
    does: "changes the faults of a region and returns the state; other faults stay",
    fields: {
      down: "true: every connection is cut",
      latencyFactor: "multiplies every latency, at least 0",
      stragglers: "{probability, factor}: this share of requests is slower by this factor",
      errorRate: "probability of a 503, 0 to 1",
      corrupt: "probability of a wrong byte in the body, 0 to 1",
      truncate: "probability of half a body, 0 to 1",
      concurrency: "requests that are served at once, while others wait; 0 for unlimited",
      ignoreRange: "true: a GET with a Range is answered with 200 and everything",
    },
    async handle({ world }, name, request) {
      const region = knownName(world.options.geography.regions, name, "region");
      world.setRegionFaults(region, await readChange(request, RegionChange));
    },
  },
  {
    method: "POST",
    path: "/pops/NAME",
    does: "changes the faults of a PoP and returns the state; other faults stay",
    fields: {
      down: "true: every connection is cut",
      kv:
        '"ok", "down" (operations fail), "slow" (3 s each), "stale" (reads return the values from before) or "cold" ' +
        "(the first read of each value takes 150 ms longer)",
    },
    async handle({ world }, name, request) {
      const pop = knownName(world.options.geography.pops, name, "PoP");
      await world.setPop(pop, await readChange(request, PopChange));
    },
  },
  {
    method: "POST",
    path: "/client",
    does: "moves the client or changes its line, and returns the state",
    fields: {
      near: "name of the PoP next to the client",
      mbit: "megabits per second that all downloads of the client share; 0 is unlimited",
    },
    async handle({ world }, _name, request) {
      const { near, mbit } = await readChange(request, ClientChange);
      if (near !== undefined) world.moveClient(knownName(world.options.geography.pops, near, "PoP"));
      if (mbit !== undefined) world.throttleClient(mbit);
    },
  },
  {
    method: "POST",
    path: "/cron",
    does: "fires the Cron Trigger of every PoP once and answers when all are done",
    async handle({ world }) {
      await world.cron();
      return { ok: true };
    },
  },
  {
    method: "POST",
    path: "/reset",
    does: "ends every fault, empties the log, gives the client its place and line back; stored objects and caches stay",
    handle: ({ world }) => world.reset(),
  },
  {
    method: "PUT",
    path: "/objects/KEY",
    does: "stores the body as an object, as `agarose put` does, without links and faults in between",
    handle: putObject,
  },
  {
    method: "POST",
    path: "/copies/KEY",
    does: "stores a whole copy of the object in the region nearest to the client, and returns its region and url",
    handle: copyObject,
  },
];

/** Finds the route of a request and the text behind its NAME or KEY. Throws REQUEST_INVALID. */
export function findRoute(method: string, pathname: string): { route: Route; name: string } {
  for (const route of ROUTES) {
    if (route.method !== method) continue;
    const [, folder] = /^(\/\w+\/)[A-Z]+$/.exec(route.path) ?? [];
    if (folder ? pathname.startsWith(folder) : pathname === route.path) {
      return { route, name: folder ? keyOfPath(pathname.slice(folder.length)) : "" };
    }
  }
  throw new AgaroseError("REQUEST_INVALID", `${method} ${pathname} is not a control route: GET / lists them`, {
    method,
    path: pathname,
  });
}

function listRoutes(): object {
  return { routes: ROUTES.map(({ handle: _handle, ...route }) => route) };
}

/** Faults and latencies of all places. */
export async function stateOf(world: World): Promise<object> {
  const { near, clientMbit, regionFaults, pops } = world.state;
  const { code, scale, s3, geography } = world.options;
  return {
    client: { near, mbit: clientMbit },
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

async function putObject({ put }: ControlContext, key: string, request: IncomingMessage): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-put-"));
  const path = join(folder, "object");
  try {
    await pipeline(request, createWriteStream(path));
    const headers = Object.entries(request.headers).filter(([name]) => HEADERS_ALLOWED.has(name));
    return await put({
      key,
      path,
      contentType: request.headers["content-type"],
      headers: Object.fromEntries(headers) as Record<string, string>,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function copyObject({ world, copy }: ControlContext, key: string): Promise<object> {
  const latencyMs = world.options.geography.regionLatencyMs[world.state.near]!;
  const [nearest] = world.regions.toSorted((a, b) => latencyMs[a.name]! - latencyMs[b.name]!);
  const { name: region, endpoint, bucket } = nearest!;
  return { region, url: objectUrl(`${endpoint}/${bucket}`, await copy(key, region)) };
}

function knownName(names: readonly string[], name: string, what: string): string {
  if (names.includes(name)) return name;
  throw new AgaroseError("REQUEST_INVALID", `no ${what} ${JSON.stringify(name)}: there are ${names.join(", ")}`, {
    name,
  });
}
