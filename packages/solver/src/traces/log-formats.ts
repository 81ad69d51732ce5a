/**
 * Turns one line of an access log into one read. Only successful reads of whole or partial objects count (GET with 200,
 * 206 or 304), because a cache could have served those.
 */

/** Names of the access log formats that can be read. */
export const LOG_FORMATS = ["s3", "logpush", "clf", "ycsb", "csv"] as const;
/** S3 server access log, Cloudflare Logpush, Common Log Format, YCSB output, or CSV with a header. */
export type LogFormat = (typeof LOG_FORMATS)[number];

/** What a line says: a read, something that is no successful read, or nothing that can be understood. */
export type LogLine =
  | {
      readonly kind: "read";
      readonly key: string;
      /** Undefined where the format has no times. */
      readonly seconds: number | undefined;
      readonly bytes?: number;
      readonly pop?: string | undefined;
    }
  | { readonly kind: "other" }
  | { readonly kind: "malformed"; readonly problem: string };

const PARSERS: Readonly<Record<LogFormat, (line: string, columns: readonly string[]) => LogLine>> = {
  s3: parseS3,
  logpush: parseLogpush,
  clf: parseCommonLog,
  ycsb: parseYcsb,
  csv: parseCsv,
};

/**
 * Parses one line; never throws. A line it cannot parse is `malformed` with the problem. `columns`: names of a CSV
 * file's columns.
 */
export function parseLogLine(format: LogFormat, line: string, columns: readonly string[]): LogLine {
  return PARSERS[format](line, columns);
}

const OTHER: LogLine = { kind: "other" };
const READ_STATUS = new Set([200, 206, 304]);

/** S3 server access log: owner bucket [time] ip requester id operation key "request" status error sent size … */
function parseS3(line: string): LogLine {
  const fields = splitFields(line);
  if (fields.length < 13) return malformed(`an S3 access log line has at least 13 fields, this one ${fields.length}`);
  const [, , time, , , , operation, key, , status, , , size] = fields;
  const seconds = parseLogTime(time!);
  if (seconds === undefined) return malformed(`no time like [06/Feb/2019:00:00:38 +0000], but ${time}`);
  if (operation !== "REST.GET.OBJECT" || !READ_STATUS.has(Number(status))) return OTHER;
  return { kind: "read", key: key!, seconds, ...sizeOf(size) };
}

/** Cloudflare Logpush, HTTP requests: one JSON object per line. */
function parseLogpush(line: string): LogLine {
  let json: Record<string, unknown>;
  try {
    json = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return malformed("not JSON");
  }
  const path = json?.["ClientRequestPath"] ?? json?.["ClientRequestURI"];
  const seconds = parseStamp(json?.["EdgeStartTimestamp"]);
  if (typeof path !== "string") return malformed("no ClientRequestPath or ClientRequestURI");
  if (seconds === undefined) return malformed(`no EdgeStartTimestamp, but ${String(json["EdgeStartTimestamp"])}`);
  const method = json["ClientRequestMethod"] ?? "GET";
  if (method !== "GET" || !READ_STATUS.has(Number(json["EdgeResponseStatus"] ?? 200))) return OTHER;
  const pop = json["EdgeColoCode"];
  return {
    kind: "read",
    key: path,
    seconds,
    ...sizeOf(json["EdgeResponseBytes"]),
    pop: typeof pop === "string" ? pop.toLowerCase() : undefined,
  };
}

/** Common and Combined Log Format: host ident user [time] "GET /path HTTP/1.1" status bytes … */
function parseCommonLog(line: string): LogLine {
  const fields = splitFields(line);
  if (fields.length < 7) return malformed(`a common log line has at least 7 fields, this one ${fields.length}`);
  const [, , , time, request, status, size] = fields;
  const seconds = parseLogTime(time!);
  if (seconds === undefined) return malformed(`no time like [06/Feb/2019:00:00:38 +0000], but ${time}`);
  const [method, path] = request!.split(" ");
  if (!path) return malformed(`no request like "GET /path HTTP/1.1", but "${request}"`);
  if (method !== "GET" || !READ_STATUS.has(Number(status))) return OTHER;
  return { kind: "read", key: path, seconds, ...sizeOf(size) };
}

/** YCSB's basic database prints READ table key [ fields ], without times. */
function parseYcsb(line: string): LogLine {
  const [operation, , key] = line.trim().split(/\s+/);
  if (!/^[A-Z]+$/.test(operation!)) return OTHER;
  if (operation !== "READ") return OTHER;
  return key === undefined ? malformed("READ without a key") : { kind: "read", key, seconds: undefined };
}

/**
 * The header names the columns: key (or path, object), seconds (or time, timestamp), optionally bytes (or size) and
 * pop.
 */
function parseCsv(line: string, columns: readonly string[]): LogLine {
  const cells = splitCsv(line);
  const cell = (...names: string[]): string | undefined => cells[columns.findIndex((column) => names.includes(column))];
  const key = cell("key", "path", "object");
  const stamp = cell("seconds", "time", "timestamp");
  if (!key) return malformed(`no key; the columns are ${columns.join(", ")}`);
  const seconds = stamp === undefined ? undefined : parseStamp(stamp);
  if (stamp !== undefined && seconds === undefined) return malformed(`no time, but ${stamp}`);
  const pop = cell("pop")?.toLowerCase();
  return { kind: "read", key, seconds, ...sizeOf(cell("bytes", "size")), pop: pop || undefined };
}

function malformed(problem: string): LogLine {
  return { kind: "malformed", problem: problem.slice(0, 200) };
}

function sizeOf(text: unknown): { bytes?: number } {
  const bytes = Number(text);
  return Number.isFinite(bytes) && bytes > 0 ? { bytes } : {};
}

/** Splits at spaces. [Bracketed] and "quoted" fields stay whole and lose their marks. */
function splitFields(line: string): string[] {
  return Array.from(
    line.matchAll(/\[([^\]]*)\]|"((?:[^"\\]|\\.)*)"|(\S+)/g),
    (match) => match[1] ?? match[2] ?? match[3]!,
  );
}

function splitCsv(line: string): string[] {
  return Array.from(line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g), (match) =>
    (match[1]?.replaceAll('""', '"') ?? match[2] ?? "").trim(),
  );
}

const MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec";

/** 06/Feb/2019:00:00:38 +0000 in seconds since 1970. */
function parseLogTime(text: string): number | undefined {
  const match = /^(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})$/.exec(text);
  const month = match ? MONTHS.indexOf(match[2]!) : -1;
  if (!match || month < 0 || month % 3 !== 0) return undefined;
  const [day, year, hour, minute, second] = [1, 3, 4, 5, 6].map((i) => Number(match[i])) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const offset = (Number(match[8]) * 60 + Number(match[9])) * 60 * (match[7] === "-" ? -1 : 1);
  return Date.UTC(year, month / 3, day, hour, minute, second) / 1000 - offset;
}

/** RFC 3339, or a number since 1970 whose size decides between seconds, milliseconds, microseconds and nanoseconds. */
function parseStamp(value: unknown): number | undefined {
  if (typeof value === "string" && value.includes("-") && value.includes(":")) {
    const ms = Date.parse(value);
    return Number.isNaN(ms) ? undefined : ms / 1000;
  }
  if ((typeof value !== "number" && typeof value !== "string") || value === "") return undefined;
  const number = Number(value);
  if (!Number.isFinite(number) || number < 0) return undefined;
  if (number > 1e17) return number / 1e9;
  if (number > 1e14) return number / 1e6;
  return number > 1e11 ? number / 1e3 : number;
}
