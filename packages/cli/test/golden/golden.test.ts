/**
 * One session over the verbs: what each command prints, mostly with --json, and asks the regions for, as golden files.
 * A change that is to change nothing leaves them as they are. `vitest run packages/cli/test/golden -u` writes them
 * anew. The help has its golden file in docs/reference/cli.md, which scripts/docs/reference.test.ts compares.
 */
import { realpathSync } from "node:fs";
import { mkdir, readFile, utimes, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { dirname, join } from "node:path";
import { format } from "prettier";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { systemClock } from "@agarose/core";
import { REGIONS, startTestWorld, type World } from "../world.ts";
import { SESSION, type Step, type Workplace } from "./session.ts";

const BEGIN = new Date("2026-01-01T00:00:00Z");
const HOUR_MS = 3_600_000;
const FORMAT = { parser: "json", printWidth: 120, objectWrap: "collapse" } as const;
const ENV = { AGAROSE_ADMIN_TOKEN: "admin-token-of-tests" };
/** A read takes the first chunks that come, so which of them it asks for, and how often, differs from run to run. */
const READ = "chunks/";
/** Settings that make more of the verbs have work to do. */
const SETTINGS = {
  code: { k: 2, m: 2 },
  survive: { regions: 1, providers: 1 },
  keep: [{ prefix: "kept/", time: "30d" }],
  expire: [{ prefix: "tmp/", time: "1d" }],
};

let world: World;
/** How often each region was asked for each kind of request. */
let asked = new Map<string, Map<string, number>>();
let normalize: (text: string) => string;

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ["Date", "performance"], now: BEGIN });
  // All regions are equally near, and none is ever late: a busy machine is no reason to ask another one.
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  const after = systemClock.after.bind(systemClock);
  vi.spyOn(systemClock, "after").mockImplementation((ms, callback) => after(Math.max(ms, 5_000), callback));
  world = await startTestWorld({ nowMs: Date.now });
  for (const region of REGIONS) {
    world.faults.set(region, (request, _response, name) => {
      const kind = kindOf(request, name);
      const counts = asked.get(kind) ?? new Map<string, number>();
      asked.set(kind, counts.set(region, (counts.get(region) ?? 0) + 1));
      return false;
    });
  }
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...json, ...SETTINGS }));
  normalize = normalizer();
});

afterAll(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await world.close();
});

/** The method, the first part of the name or of the listed prefix, and the conditions of a request. */
function kindOf({ method, url, headers }: IncomingMessage, name: string): string {
  const query = new URL(url ?? "/", "http://x").searchParams;
  const isList = method === "GET" && query.has("list-type");
  const place = (isList ? (query.get("prefix") ?? "") : name)
    .replace(/\/.*/s, "/")
    .replaceAll(/[0-9a-f-]{36}/g, "<id>");
  if (method === "GET" && place === READ) return READ;
  const parts = [isList ? "LIST" : method, place];
  if (!isList) parts.push(...[...query.keys()].filter((key) => key !== "x-id").map((key) => `?${key}`));
  parts.push(...["range", "if-match", "if-none-match"].filter((header) => header in headers));
  return parts.filter(Boolean).join(" ");
}

/** A line for each kind of request, sorted, with the number of each region, or with one for all. */
function requests(): string[] {
  const lines = [...asked].map(([kind, counts]) => {
    if (kind === READ) return `  GET ${READ}`;
    const all = new Set(counts.values());
    const same = counts.size === REGIONS.length && all.size === 1;
    const each = REGIONS.filter((region) => counts.has(region)).map((region) => `${region} ${counts.get(region)}`);
    return `  ${kind}: ${same ? `each ${[...all].join()}` : each.join(", ")}`;
  });
  return lines.toSorted();
}

/** Replaces what differs from run to run. Equal identities get equal numbers, so that it shows which are the same. */
function normalizer(): (text: string) => string {
  const seen = new Map<string, number>();
  const number = (text: string): number => {
    if (!seen.has(text)) seen.set(text, seen.size + 1);
    return seen.get(text)!;
  };
  return (text) =>
    text
      .replaceAll(realpathSync(world.dir), "<folder>")
      .replaceAll(world.dir, "<folder>")
      .replaceAll(/(127\.0\.0\.1|localhost):\d+/g, "<host>")
      .replaceAll(/[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g, "<uuid>")
      .replaceAll(/\b(?:[0-9a-f]{16}){1,2}\b/g, (id) => `<id ${number(id)}>`)
      .replaceAll(/ed25519:[A-Za-z0-9+/=]+/g, (key) => `<public key ${number(key)}>`)
      .replaceAll(/("(?:ms|\w+Ms)":)[\d.]+/g, '$1"<ms>"');
}

async function play(step: Step): Promise<string> {
  const workplace: Workplace = {
    world,
    async write(name, content) {
      const path = join(world.dir, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content);
      await utimes(path, BEGIN, BEGIN);
    },
    async configure(change, name = "agarose.config.json") {
      const json = JSON.parse(await readFile(world.configPath, "utf8")) as { regions: { name: string }[] };
      await writeFile(join(world.dir, name), JSON.stringify(change(json)));
    },
    pass: (hours) => void vi.setSystemTime(Date.now() + hours * HOUR_MS),
  };
  if (typeof step === "function") {
    await step(workplace);
    return "";
  }
  workplace.pass(0.1);
  asked = new Map();
  const line = typeof step === "string" ? `${step} --json` : step.text;
  const { code, stdout, stderr } = await world.run(line.replace("<folder>", world.dir).split(" "), ENV);
  const lines = normalize(stdout.toString()).split("\n").filter(Boolean);
  const answer = typeof step === "string" ? await Promise.all(lines.map((one) => format(one, FORMAT))) : lines;
  const text = [`$ agarose ${line}`, `exit code ${code}`, ...answer.map((document) => document.trimEnd())];
  if (stderr) text.push("on stderr:", normalize(stderr).trimEnd());
  return [...text, "requests:", ...requests(), "", ""].join("\n");
}

// The tests are one session: each finds the world as the ones before have left it.
test.each(Object.keys(SESSION))("%s: documents and requests are those of its golden file", async (verb) => {
  let text = "";
  for (const step of SESSION[verb]!) text += await play(step);
  await expect(text).toMatchFileSnapshot(`verbs/${verb}.txt`);
});
