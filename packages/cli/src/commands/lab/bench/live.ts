/**
 * `agarose lab bench --live`: reads of the user's own deployment and buckets in a browser of this machine, beside a
 * whole copy in the nearest bucket. It stores objects of random bytes, and removes them at the end.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { encodeKey, objectUrl } from "@agarose/core/format";
import { describeMachine } from "@agarose/dev-world/machine";
import type { PageRead, PageReads } from "@agarose/dev-world/page-reads";
import { summarize } from "@agarose/dev-world/statistics";
import { clientConfigOf } from "../../../lib/files/client-config.ts";
import { withContext, WRITING, type CommandContext } from "../../../lib/context.ts";
import { putObject } from "@agarose/storage/objects/put-object";
import { removeObject } from "@agarose/storage/objects/remove-object";
import { fileSource } from "@agarose/storage/upload/file-source";
import { copyName, putCopy } from "@agarose/storage/objects/whole-copy";
import { formatBytes, logLine, printResult } from "../../../ui/output.ts";
import type { Values } from "../../../command.ts";
import type { benchArgs } from "../index.ts";
import { describeLive, type LivePlace, type LiveResult, type LiveSample } from "./live-report.ts";

/** Lengths of the objects in bytes. */
const SIZES = [64 * 1024, 1_000_000, 8_000_000];
const OBJECTS = 3;
const CONTENT_TYPE = "application/octet-stream";
const PREFIX = "agarose-bench";
/** Small answers of each place, whose median counts. */
const PROBES = 5;
/** Between two reads of all objects while the PoPs cache. */
const PAUSE_MS = 15_000;

interface BenchObject {
  readonly key: string;
  readonly bytes: number;
  readonly content: Buffer;
  readonly sha256: string;
}

/** Measures and prints. Rejects with USAGE where the configuration has no PoP, or this machine no browser. */
export async function benchLive(options: Values<typeof benchArgs>): Promise<void> {
  await withContext(options, WRITING, async (context) => {
    const { config } = context;
    if (config.pops.length === 0) {
      throw new AgaroseError("USAGE", "the configuration has 0 pops and at least 1 is needed: deploy one, and name it");
    }
    const folder = `${PREFIX}/${randomBytes(8).toString("hex")}`;
    const sizes = SIZES.filter((bytes) => bytes <= options.largest);
    if (sizes.length === 0) {
      throw new AgaroseError("USAGE", `--largest ${options.largest} leaves no size: the smallest is ${SIZES[0]}`);
    }
    const objects = sizes.flatMap((bytes) => Array.from({ length: OBJECTS }, (_, i) => makeObject(folder, bytes, i)));
    const { startPageReads } = await import("@agarose/dev-world/page-reads");
    const { dropInFiles } = await import("@agarose/sw/files");
    const pages = await startPageReads({
      config: clientConfigOf(config),
      files: await dropInFiles(),
      executablePath: options.chromium,
    });
    try {
      await upload(objects, context);
      const result = await measure(objects, pages, options, context);
      printResult(context, result, describeLive(result));
    } finally {
      await pages.close();
      await removeAll(objects, context);
    }
  });
}

function makeObject(folder: string, bytes: number, index: number): BenchObject {
  const content = randomBytes(bytes);
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { key: `${folder}/${bytes}-${index}`, bytes, content, sha256 };
}

/** One copy of each size is enough: a bucket caches nothing. */
function copied(objects: readonly BenchObject[]): BenchObject[] {
  return objects.filter((_, i) => i % OBJECTS === 0);
}

async function upload(objects: readonly BenchObject[], context: CommandContext): Promise<void> {
  const { stores, signal } = context;
  const sum = (list: readonly BenchObject[]): number => list.reduce((total, { bytes }) => total + bytes, 0);
  const copies = copied(objects);
  logLine(
    `stores ${formatBytes(sum(objects))} in chunks, and ${formatBytes(sum(copies))} whole in each of ` +
      `${stores.length} regions, below ${PREFIX}/; it removes them at the end`,
  );
  const folder = await mkdtemp(join(tmpdir(), "agarose-live-"));
  try {
    const path = join(folder, "object");
    for (const { key, content } of objects) {
      await writeFile(path, content);
      const object = { key, source: fileSource(path), contentType: CONTENT_TYPE, headers: {}, force: false };
      await putObject(object, context);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
  await Promise.all(
    stores.map(async (store) => {
      for (const copy of copies) {
        const { key, content } = copy;
        await putCopy(store, key, content, { contentType: CONTENT_TYPE, signal }).catch((error: unknown) => {
          signal.throwIfAborted();
          logLine(`no copy  ${store.region.name}: ${toAgaroseError(error).message}`);
        });
      }
    }),
  );
}

async function removeAll(objects: readonly BenchObject[], context: CommandContext): Promise<void> {
  // After Ctrl-C too.
  const { signal } = new AbortController();
  for (const { key } of objects) {
    await removeObject(key, { ...context, signal }).catch((error: unknown) => {
      logLine(`left     ${key}: ${toAgaroseError(error).message}; remove it with \`agarose rm -r ${PREFIX}/\``);
    });
  }
  const names = copied(objects).map(({ key }) => copyName(key));
  for (const store of context.stores) {
    const left = await store.remove(names).catch((error: unknown) => [{ name: PREFIX, problem: String(error) }]);
    for (const { name, problem } of left) logLine(`left     ${store.region.name} ${name}: ${problem}`);
  }
}

async function measure(
  objects: readonly BenchObject[],
  pages: PageReads,
  { rounds, wait }: Values<typeof benchArgs>,
  { config, signal }: CommandContext,
): Promise<LiveResult> {
  const copies = copied(objects);
  const pops = await Promise.all(
    config.pops.map((pop) => place("PoP", pop.name, () => pages.plain(`${pop.url}/healthz`), popNote)),
  );
  const copyOf = (object: BenchObject): BenchObject => copies.find(({ bytes }) => bytes === object.bytes)!;
  const copyUrl = (object: BenchObject, url: string): string => objectUrl(url, copyName(copyOf(object).key));
  const regions = await Promise.all(
    config.regions.map((region) =>
      place(
        "region",
        region.name,
        () => pages.plain(copyUrl(copies[0]!, region.url)),
        () => region.provider ?? "",
      ),
    ),
  );
  const places = [...pops, ...regions];
  const nearest = (list: readonly LivePlace[]): string | undefined =>
    list.filter(({ ms }) => ms !== undefined).toSorted((a, b) => a.ms! - b.ms!)[0]?.name;
  const pop = config.pops.find(({ name }) => name === nearest(pops));
  const copyRegion = config.regions.find(({ name }) => name === nearest(regions));
  const samples: LiveSample[] = [];
  const sample = async (
    phase: LiveSample["phase"],
    contestant: LiveSample["contestant"],
    object: BenchObject,
  ): Promise<void> => {
    signal.throwIfAborted();
    const path = encodeKey(object.key);
    const { bytes } = object;
    const read = {
      agarose: () => pages.controlled(`/ec/${path}`),
      object: pop && (() => pages.plain(`${pop.url}/o/${path}`)),
      copy: copyRegion && (() => pages.plain(copyUrl(object, copyRegion.url))),
    }[contestant];
    const stored = contestant === "copy" ? copyOf(object) : object;
    try {
      if (read) samples.push({ ...checked(await read(), stored), phase, contestant, bytes });
    } catch (error) {
      samples.push({ phase, contestant, bytes, ms: 0, error: toAgaroseError(error).message });
    }
  };
  const round = async (phase: LiveSample["phase"], i: number): Promise<void> => {
    for (const bytes of new Set(objects.map((object) => object.bytes))) {
      const object = objects.filter((candidate) => candidate.bytes === bytes)[i % OBJECTS]!;
      for (const contestant of ["agarose", "object", "copy"] as const) await sample(phase, contestant, object);
    }
  };
  logLine("first reads");
  for (const object of objects)
    for (const contestant of ["agarose", "copy"] as const) await sample("first", contestant, object);
  logLine(`${rounds} rounds`);
  for (let i = 0; i < rounds; i++) await round("next", i);
  logLine(`keeps reading for ${wait / 1000} s, in which the PoPs cache`);
  const until = Date.now() + wait;
  while (Date.now() < until) {
    for (const { key } of objects) await pages.controlled(`/ec/${encodeKey(key)}`).catch(() => {});
    await sleep(Math.max(0, Math.min(PAUSE_MS, until - Date.now())), undefined, { signal });
  }
  logLine(`${rounds} rounds more`);
  for (let i = 0; i < rounds; i++) await round("cached", i);
  return { machine: describeMachine(pages.browser, []), places, samples, copyRegion: copyRegion?.name };
}

/** Throws SOURCE_FAILED for a status other than 200, and for other bytes than were stored. */
function checked(
  { status, sha256, ms, headers, text }: PageRead,
  object: BenchObject,
): Pick<LiveSample, "ms" | "kind"> {
  if (status !== 200) throw new AgaroseError("SOURCE_FAILED", `${object.key} was answered with ${status}: ${text}`);
  if (sha256 !== object.sha256)
    throw new AgaroseError("SOURCE_FAILED", `${object.key} has other bytes than were stored`);
  return { ms, kind: headers["x-agarose-read"] };
}

async function place(
  kind: LivePlace["kind"],
  name: string,
  ask: () => Promise<PageRead>,
  noteOf: (text: string) => string,
): Promise<LivePlace> {
  const times: number[] = [];
  let note = "";
  for (let i = 0; i < PROBES; i++) {
    try {
      const { ms, status, text } = await ask();
      if (status !== 200) throw new AgaroseError("SOURCE_FAILED", `it answers ${status}`);
      times.push(ms);
      note = noteOf(text);
    } catch (error) {
      note = toAgaroseError(error).message;
    }
  }
  return { kind, name, ms: times.length > 0 ? summarize(times).median : undefined, note };
}

/** The place that a PoP states in `/healthz`, and the data center that the request entered. */
function popNote(text: string): string {
  const { location, entry } = JSON.parse(text) as { location?: string; entry?: string | null };
  return [location && `location ${location}`, entry && `entered at ${entry}`].filter(Boolean).join(", ");
}
