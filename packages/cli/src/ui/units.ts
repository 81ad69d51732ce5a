/**
 * Counts, addresses and codes as options spell them. Each parser throws USAGE, and its message begins with the text,
 * before which `command.ts` writes the name of the option. The library parses durations, sizes and rates.
 */
import { AgaroseError } from "@agarose/core";
import type { Code } from "@agarose/core/format";
import { rangeText, type Bounds } from "@agarose/storage/maintenance/amounts";

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

/** The name of a host, in lower case. */
export function parseHost(text: string): string {
  if (/^[a-z\d-]+(\.[a-z\d-]+)*$/i.test(text)) return text.toLowerCase();
  throw usage(text, "is not the name of a host: write it without a scheme and a port, such as s3.example.com");
}

/** A code, or `auto`. */
export function parseCode(text: string): Code | "auto" {
  if (text === "auto") return text;
  const [, k, m] = /^([1-9]\d{0,2})\+(\d{1,3})$/.exec(text) ?? [];
  if (k !== undefined) return { k: Number(k), m: Number(m) };
  throw usage(text, "is not a code: write 9+3 for 9 data and 3 parity chunks, or auto");
}

function usage(text: string, problem: string): AgaroseError {
  return new AgaroseError("USAGE", `${text} ${problem}`, { text });
}
