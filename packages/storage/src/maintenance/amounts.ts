/**
 * Durations, rates, shares and money as options spell them.
 */
import { AgaroseError } from "@agarose/core";

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const UNIT_BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
};

/** Milliseconds of `90s`, `10m`, `6h` or `30d`. Throws USAGE. */
export function parseDuration(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text) ?? [];
  const ms = Number(number) * (UNIT_MS[unit ?? ""] ?? Number.NaN);
  if (ms >= 1_000) return ms;
  throw new AgaroseError("USAGE", `${text} must be a second or more: write 90s, 10m, 6h or 30d`);
}

/** Bytes a second of `10MB/s` or `512KiB/s`. Throws USAGE. */
export function parseRate(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?) ?([KMG]i?B|B)\/s$/i.exec(text) ?? [];
  const bytes = Number(number) * (UNIT_BYTES[unit?.toUpperCase() ?? ""] ?? Number.NaN);
  if (bytes > 0) return bytes;
  throw new AgaroseError("USAGE", `${text} is no rate above 0: write 10MB/s or 512KiB/s`);
}

/** A share from 0 to 1, of `0.01` or `1%`. Throws USAGE. */
export function parseShare(text: string): number {
  const [, number, percent] = /^(\d*\.?\d+)(%)?$/.exec(text) ?? [];
  const share = Number(number) / (percent ? 100 : 1);
  if (share >= 0 && share <= 1) return share;
  throw new AgaroseError("USAGE", `${text} is no share from 0 to 1: write 0.01 or 1%`);
}

/** US dollars, of `5`, `$5` or `0.25`. Throws USAGE. */
export function parseMoney(text: string): number {
  const [, number] = /^\$?(\d*\.?\d+)$/.exec(text) ?? [];
  if (number !== undefined) return Number(number);
  throw new AgaroseError("USAGE", `${text} is no sum of US dollars: write 5 or 0.25`);
}
