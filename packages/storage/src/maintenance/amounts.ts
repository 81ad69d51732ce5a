/**
 * Durations, sizes, rates, shares, shards, places and money as options spell them, and amounts as people read them.
 * Each parser throws USAGE, and its message begins with the text.
 */
import { AgaroseError } from "@agarose/core";
import type { InventoryPlace } from "../listing/inventory.ts";
import type { Shard } from "../listing/shard.ts";

/** Bounds of a number, both included. */
export interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const UNIT_BYTES: Readonly<Record<string, number>> = {
  B: 1,
  ...Object.fromEntries(["K", "M", "G", "T"].map((letter, at) => [`${letter}B`, 1000 ** (at + 1)])),
  ...Object.fromEntries(["K", "M", "G", "T"].map((letter, at) => [`${letter}IB`, 1024 ** (at + 1)])),
};

/** Milliseconds of `90s`, `10m`, `6h` or `30d` between bounds in milliseconds; also of `0` where `min` is 0. */
export function parseDuration({ min = UNIT_MS.s, max = Infinity }: Bounds = {}): (text: string) => number {
  return (text) => {
    const [, number, unit] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text) ?? [];
    const ms = text === "0" ? 0 : Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS];
    if (ms >= min && ms <= max) return ms;
    throw usage(text, `must be ${rangeText(min, max, durationText)}: write 90s, 10m, 6h or 30d`);
  };
}

/** The duration as an option spells it: `12h`. */
export function durationText(ms: number): string {
  const unit = (["d", "h"] as const).find((name) => ms > 0 && ms % UNIT_MS[name] === 0) ?? "s";
  return `${ms / UNIT_MS[unit]}${unit}`;
}

/** More processes would list for longer than they work. */
const SHARDS_MAX = 10_000;

/** The second of eight shards of `2/8`. */
export function parseShard(text: string): Shard {
  const [, index = 0, count = 0] = (/^(\d+)\/(\d+)$/.exec(text) ?? []).map(Number);
  if (index >= 1 && index <= count && count <= SHARDS_MAX) return { index, count };
  throw usage(text, `is not a shard: write 2/8 for the second of eight, with at most ${SHARDS_MAX} in all`);
}

/** Where the inventories of a region are: `eu=s3://reports/eu-bucket/daily`. */
export function parseInventoryPlace(text: string): InventoryPlace {
  const [, region, bucket, path] = /^([^=]+)=s3:\/\/([^/]+)\/(.+)$/.exec(text) ?? [];
  if (region && bucket && path) return { region, bucket, path };
  throw usage(text, "is not where an inventory is: write eu=s3://BUCKET/PATH for the folder of that of the region eu");
}

/** Bytes of `16GiB`, `500MB` or `8000000`. */
export function parseSize(text: string): number {
  const bytes = bytesOf(text);
  if (bytes >= 0) return Math.round(bytes);
  throw usage(text, "is not a size: write 16GiB, 500MB or a number of bytes");
}

/** Bytes a second of `10MB/s` or `512KiB/s`. */
export function parseRate(text: string): number {
  const bytes = /B\/s$/i.test(text) ? bytesOf(text.slice(0, -2)) : Number.NaN;
  if (bytes > 0) return bytes;
  throw usage(text, "is not a rate above 0: write 10MB/s or 512KiB/s");
}

/** NaN for what is no size. */
function bytesOf(text: string): number {
  const [, number, unit = "B"] = /^(\d+(?:\.\d+)?) ?([KMGT]i?B|B)?$/i.exec(text) ?? [];
  return Number(number) * UNIT_BYTES[unit.toUpperCase()]!;
}

/** A share from 0 to 1, of `0.01` or `1%`. */
export function parseShare(text: string): number {
  const [, number, percent] = /^(\d*\.?\d+)(%)?$/.exec(text) ?? [];
  const share = Number(number) / (percent ? 100 : 1);
  if (share >= 0 && share <= 1) return share;
  throw usage(text, "is not a share from 0 to 1: write 0.01 or 1%");
}

/** US dollars, of `5`, `$5` or `0.25`. */
export function parseMoney(text: string): number {
  const [, number] = /^\$?(\d*\.?\d+)$/.exec(text) ?? [];
  if (number !== undefined) return Number(number);
  throw usage(text, "is not an amount in US dollars: write 5 or 0.25");
}

/** A length for people: 1,536 is `1.5 KiB`. */
export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return unit === 0 ? `${bytes} B` : `${(bytes / 1024 ** unit).toFixed(1)} ${units[unit]}`;
}

/** A count with its noun: `1 region`, `3 regions`. Nouns form their plural with an s unless `plural` says otherwise. */
export function formatCount(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

/** Bounds in words: `1 to 64`, or `1 or more`. */
export function rangeText(min: number, max: number, show: (value: number) => string = String): string {
  return max === Infinity ? `${show(min)} or more` : `${show(min)} to ${show(max)}`;
}

function usage(text: string, problem: string): AgaroseError {
  return new AgaroseError("USAGE", `${text} ${problem}`, { text });
}
