/**
 * Numbers with units as options spell them. Each parser throws USAGE, and its message begins with the text, before
 * which `command.ts` writes the name of the option.
 */
import { AgaroseError } from "@agarose/core";
import type { Code } from "@agarose/core/format";
import { parseDuration as parseMs } from "@agarose/storage/maintenance/amounts";

export { parseMoney as parseDollars, parseRate, parseShare } from "@agarose/storage/maintenance/amounts";

/** Bounds of a number, both included. */
export interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Milliseconds of `90s`, `10m`, `6h` or `30d` between bounds in milliseconds; also of `0` where `min` is 0. */
export function parseDuration({ min = SECOND_MS, max = Infinity }: Bounds = {}): (text: string) => number {
  return (text) => {
    const ms = min === 0 && /^0[smhd]?$/.test(text) ? 0 : parseMs(text);
    if (ms >= min && ms <= max) return ms;
    throw usage(text, `must be ${rangeText(min, max, durationText)}`);
  };
}

/** The duration as an option spells it: `12h`. */
export function durationText(ms: number): string {
  if (ms >= DAY_MS && ms % DAY_MS === 0) return `${ms / DAY_MS}d`;
  return ms >= HOUR_MS && ms % HOUR_MS === 0 ? `${ms / HOUR_MS}h` : `${ms / SECOND_MS}s`;
}

/** A whole number. */
export function parseCount({ min = 0, max = Number.MAX_SAFE_INTEGER }: Bounds = {}): (text: string) => number {
  return (text) => {
    const count = Number(text);
    if (/^\d+$/.test(text) && count >= min && count <= max) return count;
    throw usage(text, `is not a whole number, ${rangeText(min, max === Number.MAX_SAFE_INTEGER ? Infinity : max)}`);
  };
}

/** A number, which may have a fraction. */
export function parseNumber({ min = 0, max = Infinity }: Bounds = {}): (text: string) => number {
  return (text) => {
    const parsed = Number(text);
    if (text.trim() !== "" && Number.isFinite(parsed) && parsed >= min && parsed <= max) return parsed;
    throw usage(text, `is not a number, ${rangeText(min, max)}`);
  };
}

/** A TCP port; 0 is any free one. */
export const parsePort = parseCount({ max: 65_535 });

/** Bytes of `16GiB`, `500MB` or `8000000`. */
export function parseSize(text: string): number {
  const [, number, unit = "B"] = /^(\d+(?:\.\d+)?) ?([KMGT]i?B|B)?$/i.exec(text) ?? [];
  const bytes = Number(number) * UNIT_BYTES[unit.toUpperCase()]!;
  if (bytes >= 0) return Math.round(bytes);
  throw usage(text, "is no size: write 16GiB, 500MB or a number of bytes");
}

const UNIT_BYTES: Readonly<Record<string, number>> = {
  B: 1,
  ...Object.fromEntries(["K", "M", "G", "T"].map((letter, at) => [`${letter}B`, 1000 ** (at + 1)])),
  ...Object.fromEntries(["K", "M", "G", "T"].map((letter, at) => [`${letter}IB`, 1024 ** (at + 1)])),
};

/** Host and port to listen on. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Host and port of `127.0.0.1:8787`, `[::1]:8787` or `:8787`, which is every address. */
export function parseAddress(text: string): Address {
  const [, host = "", port = ""] = /^(.*):(\d{1,5})$/.exec(text) ?? [];
  if (port === "" || Number(port) > 65_535) throw usage(text, "is not an address such as 127.0.0.1:8787");
  return { host: host.replace(/^\[(.*)\]$/, "$1") || "::", port: Number(port) };
}

/** A code, or `auto`. */
export function parseCode(text: string): Code | "auto" {
  if (text === "auto") return text;
  const [, k, m] = /^([1-9]\d{0,2})\+(\d{1,3})$/.exec(text) ?? [];
  if (k !== undefined) return { k: Number(k), m: Number(m) };
  throw usage(text, "is no code: write 9+3 for 9 data and 3 parity chunks, or auto");
}

function rangeText(min: number, max: number, show: (value: number) => string = String): string {
  return max === Infinity ? `${show(min)} or more` : `${show(min)} to ${show(max)}`;
}

function usage(text: string, problem: string): AgaroseError {
  return new AgaroseError("USAGE", `${text} ${problem}`, { text });
}
