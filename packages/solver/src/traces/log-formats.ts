/**
 * Turns one line of an access log into one read. Only successful reads of whole or partial objects count (GET with 200,
 * 206 or 304), because a cache could have served those. Keys are what readers go by: paths without their query string
 * and percent-encoding, so that `/a.js?v=1` and `/a.js?v=2` are one object.
 */

/** Names of the access log formats that can be read. */
export const LOG_FORMATS = ["s3", "logpush", "cloudfront", "fastly", "clf", "ycsb", "csv"] as const;
/**
 * S3 server access log, Cloudflare Logpush, CloudFront standard log, Fastly's default format, Common Log Format, YCSB
 * output, or CSV with a header.
 */
export type LogFormat = (typeof LOG_FORMATS)[number];

/** The meaning of a line: a read, something other than a successful read, or nothing that can be understood. */
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

/** The cells of a CSV file's row by the lower-case names in its header, or a JSON object. */
export type LogRecord = Readonly<Record<string, unknown>>;

/** Parses the lines of one file in order; never throws. A line it cannot parse is `malformed` with the problem. */
export type LineParser = (line: string) => LogLine;

/** A parser for the lines of one file, which may have a header. CSV has records in place of lines: `parseCsvRecord`. */
export function lineParser(format: Exclude<LogFormat, "csv">): LineParser {
  return format === "cloudfront" ? cloudFrontParser() : PARSERS[format];
}

const PARSERS: Readonly<Record<Exclude<LogFormat, "csv" | "cloudfront">, LineParser>> = {
  s3: parseS3,
  logpush: parseLogpush,
  fastly: parseFastly,
  clf: parseCommonLog,
  ycsb: parseYcsb,
};

/**
 * Returns the format that fits the most lines, if it fits at least half of them, and undefined otherwise. `records`:
 * the same text read as CSV with a header.
 */
export function guessLogFormat(lines: readonly string[], records: readonly LogRecord[] = []): LogFormat | undefined {
  const given = lines.filter((line) => line.trim() !== "");
  let best: LogFormat | undefined;
  let most = given.length / 2;
  for (const format of LOG_FORMATS) {
    const parsed = format === "csv" ? records.map(parseCsvRecord) : given.map(lineParser(format));
    const reads = parsed.filter(({ kind }) => kind === "read").length;
    // YCSB prints much besides its operations, so any line could be its own: only reads count as evidence.
    const counted = format === "ycsb" ? reads : parsed.filter(({ kind }) => kind !== "malformed").length;
    const fitting = format === "csv" && reads > 0 ? counted + 1 : counted;
    if (fitting > most || (fitting === most && best === undefined && fitting > 0)) {
      best = format;
      most = fitting;
    }
  }
  return best;
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
  return { kind: "read", key: decoded(key!), seconds, ...sizeOf(size) };
}

/** Cloudflare Logpush, HTTP requests: one JSON object per line. */
function parseLogpush(line: string): LogLine {
  const json = parseRecord(line);
  if (!json) return malformed("not JSON");
  const path = json["ClientRequestPath"] ?? json["ClientRequestURI"];
  if (typeof path !== "string") return malformed("no ClientRequestPath or ClientRequestURI");
  return httpRead({
    method: json["ClientRequestMethod"] ?? "GET",
    path,
    status: json["EdgeResponseStatus"] ?? 200,
    stamp: json["EdgeStartTimestamp"],
    bytes: json["EdgeResponseBytes"],
    pop: json["EdgeColoCode"],
  });
}

/**
 * CloudFront standard log: tab-separated cells that a `#Fields:` line names, or JSON with the same names. CloudFront
 * percent-encodes its cells, on top of the URL's own encoding.
 */
function cloudFrontParser(): LineParser {
  let columns: readonly string[] | undefined;
  return (line) => {
    if (line.startsWith("#")) {
      if (line.startsWith("#Fields:")) columns = line.slice("#Fields:".length).trim().split(/\s+/);
      return OTHER;
    }
    const cells = line.split("\t");
    const record = columns ? Object.fromEntries(columns.map((name, i) => [name, cells[i]])) : parseRecord(line);
    if (!record) return malformed("no #Fields: line came before, and this line is not JSON");
    const stem = record["cs-uri-stem"];
    const [date, time, location] = ["date", "time", "x-edge-location"].map((name) => record[name]);
    if (typeof stem !== "string") return malformed(`no cs-uri-stem among ${Object.keys(record).length} cells`);
    return httpRead({
      method: record["cs-method"],
      path: decoded(stem),
      status: record["sc-status"],
      stamp: `${String(date)}T${String(time)}Z`,
      bytes: record["sc-bytes"],
      // FRA56-P4: the airport, and a number.
      pop: typeof location === "string" ? location.slice(0, 3) : undefined,
    });
  };
}

/**
 * `<134>2016-07-04T22:37:26Z cache-sjc3128 LogTest[62959]: ` before the line itself: Fastly's "classic" line format.
 */
const SYSLOG = /^<\d+>\S+ (?:cache-)?(\S+) [^:]*: ?/;

/** Fastly: the Common Log Format, its default, or JSON with the names that its documentation proposes. */
function parseFastly(line: string): LogLine {
  const prefix = SYSLOG.exec(line);
  const own = prefix ? line.slice(prefix[0].length) : line;
  const server = prefix?.[1];
  const json = parseRecord(own);
  if (!json) {
    // Without Fastly's prefix, the line is any web server's.
    const parsed = server === undefined ? malformed("neither a syslog prefix nor JSON") : parseCommonLog(own);
    return parsed.kind === "read" ? { ...parsed, pop: airportOf(server) } : parsed;
  }
  const [path, status] = [json["url"], json["response_status"] ?? json["status"]];
  if (typeof path !== "string" || status === undefined) return malformed("no url or response_status");
  return httpRead({
    method: json["request_method"] ?? "GET",
    path,
    status,
    stamp: json["timestamp"] ?? json["time_start"] ?? json["time"],
    bytes: json["response_body_size"],
    pop: airportOf(json["fastly_server"] ?? json["pop"] ?? server),
  });
}

/** The airport in the name of a Fastly server, such as cache-sjc3128-SJC. */
function airportOf(server: unknown): string | undefined {
  return typeof server === "string" ? /^(?:cache-)?([a-z]{3})/i.exec(server)?.[1]?.toLowerCase() : undefined;
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
  return { kind: "read", key: keyOfPath(path), seconds, ...sizeOf(size) };
}

/** YCSB's basic database prints READ table key [ fields ], without times. */
function parseYcsb(line: string): LogLine {
  const [operation, , key] = line.trim().split(/\s+/);
  if (!/^[A-Z]+$/.test(operation!)) return OTHER;
  if (operation !== "READ") return OTHER;
  return key === undefined ? malformed("READ without a key") : { kind: "read", key, seconds: undefined };
}

/**
 * A row of a CSV file with columns key (or path, object), seconds (or time, timestamp), and perhaps bytes, pop. The
 * last name of each is that of Wikimedia's caching traces
 * (https://wikitech.wikimedia.org/wiki/Analytics/Data_Lake/Traffic/Caching).
 */
export function parseCsvRecord(record: LogRecord): LogLine {
  const cell = (...names: string[]): string | undefined => {
    const found = names.map((name) => record[name]).find((value) => value !== undefined);
    return found === undefined ? undefined : String(found);
  };
  const path = cell("path");
  const key = cell("key") ?? (path && keyOfPath(path)) ?? cell("object", "hashed_path_query");
  const stamp = cell("seconds", "time", "timestamp", "relative_unix");
  if (!key) return malformed(`no key; the columns are ${Object.keys(record).join(", ")}`);
  const seconds = stamp === undefined ? undefined : parseStamp(stamp);
  if (stamp !== undefined && seconds === undefined) return malformed(`no time, but ${stamp}`);
  const pop = cell("pop")?.toLowerCase();
  return { kind: "read", key, seconds, ...sizeOf(cell("bytes", "size", "response_size")), pop: pop || undefined };
}

/** The cells of a request that a CDN served. */
interface HttpCells {
  readonly method: unknown;
  readonly path: string;
  readonly status: unknown;
  readonly stamp: unknown;
  readonly bytes: unknown;
  readonly pop: unknown;
}

function httpRead({ method, path, status, stamp, bytes, pop }: HttpCells): LogLine {
  const seconds = parseStamp(stamp);
  if (seconds === undefined) return malformed(`no time, but ${String(stamp)}`);
  if (method !== "GET" || !READ_STATUS.has(Number(status))) return OTHER;
  const named = typeof pop === "string" ? pop.toLowerCase() : undefined;
  return { kind: "read", key: keyOfPath(path), seconds, ...sizeOf(bytes), pop: named };
}

/** The path of a request's target as a key: without origin, query and percent-encoding. */
function keyOfPath(target: string): string {
  return decoded(target.replace(/^https?:\/\/[^/]+/i, "").replace(/[?#].*$/s, ""));
}

/** Text that cannot be decoded stays unchanged. */
function decoded(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function parseRecord(line: string): LogRecord | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as LogRecord;
  } catch {
    return undefined;
  }
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
    // Fastly's %z has no colon in its offset: 2016-07-04T22:37:26+0000.
    const ms = Date.parse(value.replace(/([+-]\d\d)(\d\d)$/, "$1:$2"));
    return Number.isNaN(ms) ? undefined : ms / 1000;
  }
  if ((typeof value !== "number" && typeof value !== "string") || value === "") return undefined;
  const number = Number(value);
  if (!Number.isFinite(number) || number < 0) return undefined;
  if (number > 1e17) return number / 1e9;
  if (number > 1e14) return number / 1e6;
  return number > 1e11 ? number / 1e3 : number;
}
