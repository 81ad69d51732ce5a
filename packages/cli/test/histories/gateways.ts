/**
 * Histories of clients at gateways that are processes, while regions come and go and gateways are killed.
 *
 *     node packages/cli/test/histories/gateways.ts [seconds] [seed]
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { startS3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { isLinearizable, type HistoryEntry, Dice } from "@agarose/storage/testing";

const CLI = fileURLToPath(new URL("../../bin/agarose.js", import.meta.url));
const KEYS = { accessKeyId: "histories", secretAccessKey: "histories-secret" };
const REGIONS = ["region-0", "region-1", "region-2", "region-3", "region-4"] as const;
/** A majority of the regions is there at each moment. */
const AWAY_MAX = 2;
const AWAY = ["down", "silent", "slow", "mute"] as const;
const SILENT_MS = 4_000;
const SLOW_MS = 300;
const GATEWAYS = 2;
const CLIENTS = 6;
const KEYS_AT_ONCE = 2;
/** Another key follows after so many operations, because the checker's time grows with those that stay open. */
const OPERATIONS_OF_KEY = 60;
/** From small enough to lie in the manifest to several stripes. */
const BODY_BYTES = [30, 5_000, 200_000] as const;
const Bucket = "agarose";

/**
 * The faults of a region: it closes connections, answers nothing, answers late, or does what was requested
 * and closes the connection before it has answered.
 */
type Away = (typeof AWAY)[number];

/** The observations of a run. */
export interface Histories {
  /** Operations by their outcome. */
  readonly outcomes: Readonly<Record<HistoryEntry["outcome"], number>>;
  /** Requests that met a region which was away. */
  readonly faults: Readonly<Record<Away, number>>;
  readonly kills: number;
  readonly keys: number;
  /** The histories that no order of their operations explains. */
  readonly broken: readonly { readonly key: string; readonly history: readonly HistoryEntry[] }[];
}

/** Clients read and write for `seconds`. The seed chooses operations, faults and kills, but not their timing. */
export async function recordHistories(seconds: number, seed: number): Promise<Histories> {
  const regions = new Regions();
  const buckets = await startS3Endpoint({ ...KEYS, buckets: [...REGIONS], intercept: regions.intercept });
  const dir = await mkdtemp(join(tmpdir(), "agarose-histories-"));
  const places = REGIONS.map((name) => ({ name, provider: name, endpoint: buckets.url, bucket: name }));
  const config = { regions: places, code: { k: 2, m: 2 }, stripeBytes: 65_536, unsigned: true };
  await writeFile(join(dir, "agarose.config.json"), JSON.stringify(config));
  const gateways = await Promise.all(Array.from({ length: GATEWAYS }, () => GatewayProcess.start(dir)));
  const histories = new Map<string, HistoryEntry[]>();
  const run = { until: performance.now() + seconds * 1_000, gateways, histories, seed };
  try {
    const clients = Array.from({ length: CLIENTS }, (_, id) => readAndWrite(id, run));
    const [kills] = await Promise.all([killInTurn(run), regions.comeAndGo(run), ...clients]);
    const broken = [...histories].filter(([, history]) => !isLinearizable(history));
    const outcomes = { done: 0, refused: 0, open: 0 };
    for (const { outcome } of [...histories.values()].flat()) outcomes[outcome]++;
    const found = broken.map(([key, history]) => ({ key, history }));
    return { outcomes, faults: regions.faults, kills, keys: histories.size, broken: found };
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.kill()));
    await buckets.close();
    await rm(dir, { recursive: true, force: true });
  }
}

interface Run {
  readonly until: number;
  readonly gateways: GatewayProcess[];
  readonly histories: Map<string, HistoryEntry[]>;
  readonly seed: number;
}

/** Chooses regions that are away for a while, and makes their answers. */
class Regions {
  readonly faults: Record<Away, number> = { down: 0, silent: 0, slow: 0, mute: 0 };
  readonly #away = new Map<string, Away>();

  async comeAndGo({ until, seed }: Run): Promise<void> {
    const dice = new Dice(seed, -1);
    while (performance.now() < until) {
      this.#away.clear();
      for (let left = dice.below(AWAY_MAX + 1); left > 0; left--) this.#away.set(dice.pick(REGIONS), dice.pick(AWAY));
      await sleep(200 + dice.below(2_000));
    }
    this.#away.clear();
  }

  readonly intercept = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    const away = this.#away.get(request.url!.split(/[/?]/)[1]!);
    if (away === undefined) return false;
    this.faults[away]++;
    if (away === "mute") {
      response.writeHead = () => response.destroy();
      response.end = () => response.destroy();
      return false;
    }
    if (away !== "down") await sleep(away === "slow" ? SLOW_MS : SILENT_MS);
    if (away !== "slow") request.destroy();
    return away !== "slow";
  };
}

class GatewayProcess {
  readonly client: S3Client;
  readonly #child: ChildProcess;
  readonly #dir: string;

  private constructor(child: ChildProcess, endpoint: string, dir: string) {
    this.#child = child;
    this.#dir = dir;
    const shared = { region: "us-east-1", forcePathStyle: true, maxAttempts: 1, credentials: KEYS };
    this.client = new S3Client({ ...shared, endpoint });
  }

  static async start(cwd: string): Promise<GatewayProcess> {
    const env = {
      PATH: process.env["PATH"],
      AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
      AGAROSE_GATEWAY_ACCESS_KEY_ID: KEYS.accessKeyId,
      AGAROSE_GATEWAY_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
    };
    const stdio = ["ignore", "pipe", "inherit"] as const;
    const child = spawn(process.execPath, [CLI, "gateway", "--listen", "127.0.0.1:0", "--json"], {
      cwd,
      env,
      stdio: [...stdio],
    });
    const [printed] = (await once(child.stdout!, "data")) as [Buffer];
    const { url } = JSON.parse(printed.toString()) as { url: string };
    return new GatewayProcess(child, url, cwd);
  }

  /** Another one over the same buckets. */
  next(): Promise<GatewayProcess> {
    return GatewayProcess.start(this.#dir);
  }

  async kill(): Promise<void> {
    const closed = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await closed;
    this.client.destroy();
  }
}

/** Kills a gateway every few seconds, and starts another one. Returns how many. */
async function killInTurn({ until, gateways, seed }: Run): Promise<number> {
  const dice = new Dice(seed, -2);
  for (let kills = 0; ; kills++) {
    await sleep(2_000 + dice.below(3_000));
    if (performance.now() > until) return kills;
    const slot = dice.below(GATEWAYS);
    // The clients go on at the other one, whose answers are right without anything that this one knew.
    const [killed] = gateways.splice(slot, 1);
    await killed!.kill();
    gateways.push(await killed!.next());
  }
}

async function readAndWrite(id: number, { until, gateways, histories, seed }: Run): Promise<void> {
  const dice = new Dice(seed, id);
  let [values, round] = [0, 0];
  const last = new Map<string, { readonly value: string | undefined; readonly etag?: string }>();
  while (performance.now() < until) {
    const slot = dice.below(KEYS_AT_ONCE);
    while ((histories.get(`${slot}-${round}`)?.length ?? 0) >= OPERATIONS_OF_KEY) round++;
    const Key = `${slot}-${round}`;
    const history = histories.get(Key) ?? [];
    histories.set(Key, history);
    const kind = dice.pick(["read", "read", "read", "put", "put", "remove"] as const);
    const expected = kind === "put" && dice.chance(0.5) ? last.get(Key) : undefined;
    const value = kind === "put" ? `${id}.${values++}` : undefined;
    const { client } = dice.pick(gateways);
    const entry: HistoryEntry = {
      start: performance.now(),
      end: Number.POSITIVE_INFINITY,
      kind,
      value,
      expected,
      outcome: "open",
    };
    history.push(entry);
    try {
      if (kind === "read") {
        const { Body, ETag } = await client.send(new GetObjectCommand({ Bucket, Key }));
        entry.value = valueOf(await Body!.transformToString());
        last.set(Key, { value: entry.value, etag: ETag! });
      } else if (kind === "put") {
        const condition = expected && (expected.etag === undefined ? { IfNoneMatch: "*" } : { IfMatch: expected.etag });
        const Body = bodyOf(value!, dice.pick(BODY_BYTES));
        const { ETag } = await client.send(new PutObjectCommand({ Bucket, Key, Body, ...condition }));
        last.set(Key, { value, etag: ETag! });
      } else {
        await client.send(new DeleteObjectCommand({ Bucket, Key }));
        last.set(Key, { value: undefined });
      }
      entry.outcome = "done";
    } catch (error) {
      const status = error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
      if (status === 404 && kind === "read") {
        entry.outcome = "done";
        last.set(Key, { value: undefined });
      } else if (status === 412 || (status === 404 && expected)) entry.outcome = "refused";
      else if (status === 409) history.splice(history.indexOf(entry), 1);
      else if (status !== undefined && status < 500) throw error;
    }
    if (entry.outcome !== "open") entry.end = performance.now();
    await sleep(dice.below(50));
  }
}

/** So many bytes at least that repeat the value, so that half of one version and half of another one is noticed. */
function bodyOf(value: string, bytes: number): string {
  return `${value}\n`.repeat(Math.ceil(bytes / (value.length + 1)));
}

function valueOf(body: string): string {
  const lines = new Set(body.trimEnd().split("\n"));
  return [...lines].join(" and ");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [seconds = "60", seed = String(Date.now() % 1_000_000_000)] = process.argv.slice(2);
  console.log(`seed ${seed}`);
  const found = await recordHistories(Number(seconds), Number(seed));
  console.log(JSON.stringify(found, undefined, 1));
  process.exitCode = found.broken.length > 0 ? 1 : 0;
}
