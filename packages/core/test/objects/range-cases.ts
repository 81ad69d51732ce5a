/**
 * Range and conditional requests of RFC 9110 (sections 13 and 14) with the one answer that every face of an object
 * gives: `objectAnswer`, the edge and the service worker all run this table.
 *
 * Where the RFC leaves a choice, ours is: ranges of an empty object are ignored (14.2 lets a server ignore Range), so
 * the answer is the whole object. So are several ranges, except at the edge.
 */

export interface RangeCase {
  readonly name: string;
  readonly method: "GET" | "HEAD";
  readonly headers: Readonly<Record<string, string>>;
  readonly expected: RangeAnswer;
  /** Whether it asks for several ranges, which the edge sends (`partsAnswer`). */
  readonly isSeveral?: boolean;
}

/** The compared parts of a response. */
export interface RangeAnswer {
  readonly status: number;
  /** `Content-Range`. */
  readonly contentRange: string | null;
  /** Bytes [start, end) of the object in the body; undefined if there is no body or it is an error's. */
  readonly body: readonly [start: number, end: number] | undefined;
}

/** The object under test. `bytes` is at least 600. */
export interface RangedObject {
  readonly bytes: number;
  readonly etag: string;
  /** An HTTP date. */
  readonly lastModified: string;
}

export function rangeCases({ bytes: n, etag, lastModified }: RangedObject): RangeCase[] {
  const part = (start: number, end: number): RangeAnswer => ({
    status: 206,
    contentRange: `bytes ${start}-${end - 1}/${n}`,
    body: [start, end],
  });
  const whole: RangeAnswer = { status: 200, contentRange: null, body: [0, n] };
  const outside: RangeAnswer = { status: 416, contentRange: `bytes */${n}`, body: undefined };
  const empty = (status: number): RangeAnswer => ({ status, contentRange: null, body: undefined });
  const get = (headers: Record<string, string>, expected: RangeAnswer): RangeCase => ({
    name: nameOf(headers),
    method: "GET",
    headers,
    expected,
    isSeveral: /,/.test(headers["range"] ?? ""),
  });
  const head = (headers: Record<string, string>, expected: RangeAnswer): RangeCase => ({
    name: nameOf(headers, "HEAD"),
    method: "HEAD",
    headers,
    expected: { ...expected, body: undefined },
    isSeveral: /,/.test(headers["range"] ?? ""),
  });
  const other = `"${"0".repeat(32)}"`;
  const earlier = new Date(Date.parse(lastModified) - 1000).toUTCString();
  const later = new Date(Date.parse(lastModified) + 1000).toUTCString();
  const range = "bytes=5-9";
  const tooFar = `bytes=${n}-`;

  return [
    get({}, whole),
    // First to last, both inclusive.
    get({ range: "bytes=0-0" }, part(0, 1)),
    get({ range: "bytes=0-1" }, part(0, 2)),
    get({ range: "bytes=5-9" }, part(5, 10)),
    get({ range: `bytes=0-${n - 1}` }, part(0, n)),
    get({ range: `bytes=${n - 1}-${n - 1}` }, part(n - 1, n)),
    get({ range: `bytes=10-${n + 100}` }, part(10, n)),
    get({ range: "bytes=10-99999999999999999999" }, part(10, n)),
    get({ range: "bytes=007-008" }, part(7, 9)),
    get({ range: "BYTES=0-1" }, part(0, 2)),
    // From somewhere on.
    get({ range: "bytes=0-" }, part(0, n)),
    get({ range: "bytes=500-" }, part(500, n)),
    get({ range: `bytes=${n - 1}-` }, part(n - 1, n)),
    // The last bytes.
    get({ range: "bytes=-1" }, part(n - 1, n)),
    get({ range: "bytes=-500" }, part(n - 500, n)),
    get({ range: `bytes=-${n}` }, part(0, n)),
    get({ range: `bytes=-${n + 1}` }, part(0, n)),
    // No byte of the object.
    get({ range: tooFar }, outside),
    get({ range: `bytes=${n}-${n + 5}` }, outside),
    get({ range: "bytes=99999999999999999999-" }, outside),
    get({ range: "bytes=-0" }, outside),
    // Several: ignored, except at the edge.
    get({ range: "bytes=0-1,5-6" }, whole),
    get({ range: "bytes=0-0, -1" }, whole),
    get({ range: `bytes=0-1,${n}-` }, whole),
    // Not a range of bytes: ignored.
    ...["bytes=", "bytes=-", "bytes", "bytes 0-1", "0-1", "items=0-1", "bytes=a-b", "bytes=0-1x", "bytes=0x0-0x5"].map(
      (malformed) => get({ range: malformed }, whole),
    ),
    ...["bytes=5-1", "bytes=--1", "bytes=0--1", "bytes=+0-1", "bytes=1.5-3", "bytes=1e2-", "bytes=0-1;2-3"].map(
      (malformed) => get({ range: malformed }, whole),
    ),
    // A range of what the client has the rest of already (13.1.5): only by a strong comparison, or the very date.
    get({ "if-range": etag, range }, part(5, 10)),
    get({ "if-range": etag, range: tooFar }, outside),
    get({ "if-range": etag }, whole),
    get({ "if-range": other, range }, whole),
    get({ "if-range": other, range: tooFar }, whole),
    get({ "if-range": `W/${etag}`, range }, whole),
    get({ "if-range": lastModified, range }, part(5, 10)),
    get({ "if-range": earlier, range }, whole),
    get({ "if-range": later, range }, whole),
    get({ "if-range": "yesterday", range }, whole),
    // Preconditions come first (13.2.2).
    get({ "if-none-match": etag, range }, empty(304)),
    get({ "if-none-match": `W/${etag}`, range }, empty(304)),
    get({ "if-none-match": `${other}, ${etag}`, range }, empty(304)),
    get({ "if-none-match": "*", range }, empty(304)),
    get({ "if-none-match": etag, range: tooFar }, empty(304)),
    get({ "if-none-match": other, range }, part(5, 10)),
    get({ "if-none-match": other, "if-modified-since": later, range }, part(5, 10)),
    get({ "if-none-match": etag, "if-range": other, range }, empty(304)),
    get({ "if-modified-since": lastModified, range }, empty(304)),
    get({ "if-modified-since": earlier, range }, part(5, 10)),
    get({ "if-match": etag, range }, part(5, 10)),
    get({ "if-match": other, range }, empty(412)),
    get({ "if-match": `W/${etag}`, range }, empty(412)),
    get({ "if-unmodified-since": lastModified, range }, part(5, 10)),
    get({ "if-unmodified-since": earlier, range }, empty(412)),
    // Both validators of If-Match's pair, and of If-None-Match's: the tag decides, and the date is not looked at.
    get({ "if-match": etag, "if-unmodified-since": earlier, range }, part(5, 10)),
    get({ "if-match": other, "if-unmodified-since": lastModified, range }, empty(412)),
    get({ "if-none-match": other, "if-modified-since": lastModified, range }, part(5, 10)),
    get({ "if-none-match": etag, "if-modified-since": earlier, range }, empty(304)),
    get({ "if-match": etag, "if-none-match": etag, range }, empty(304)),
    get({ "if-match": other, "if-none-match": etag, range }, empty(412)),
    get({ "if-unmodified-since": earlier, "if-modified-since": lastModified, range }, empty(412)),
    get({ "if-match": "*", range }, part(5, 10)),
    get({ "if-match": `${other}, ${etag}`, range }, part(5, 10)),
    get({ "if-modified-since": "yesterday", range }, part(5, 10)),
    get({ "if-unmodified-since": "yesterday", range }, part(5, 10)),
    // The three forms of a date (5.6.7).
    ...[rfc850(lastModified), asctime(lastModified)].flatMap((date) => [
      get({ "if-range": date, range }, part(5, 10)),
      get({ "if-modified-since": date, range }, empty(304)),
      get({ "if-unmodified-since": date, range }, part(5, 10)),
    ]),
    // A HEAD is answered with what a GET would be (9.3.2), so that clients see whether ranges are served.
    head({}, whole),
    head({ range: "bytes=0-1" }, part(0, 2)),
    head({ range: "bytes=-1" }, part(n - 1, n)),
    head({ range: "items=0-1" }, whole),
    head({ range: tooFar }, outside),
    head({ range, "if-range": other }, whole),
    head({ range, "if-range": etag }, part(5, 10)),
    head({ range, "if-none-match": etag }, empty(304)),
    head({ range, "if-match": other }, empty(412)),
    head({ range: "bytes=0-1,5-6" }, whole),
  ];
}

/** Returns requests for an empty object. The response to all of them is the whole object. */
export function emptyObjectCases(): RangeCase[] {
  return ["bytes=0-", "bytes=0-0", "bytes=-1", "bytes=-0", "bytes=5-9"].map((range) => ({
    name: `of an empty object, range: ${range}`,
    method: "GET",
    headers: { range },
    expected: { status: 200, contentRange: null, body: [0, 0] },
  }));
}

/**
 * Ranges in the order in which a media element of Safari asks for them: two bytes to see whether ranges are answered at
 * all, the same again, everything, and from where the index of the file or a seek leads on.
 */
export function mediaProbes(bytes: number): readonly (readonly [start: number, end: number])[] {
  const middle = Math.floor(bytes / 2);
  return [
    [0, 2],
    [0, 2],
    [0, bytes],
    [bytes - 100, bytes],
    [middle, bytes],
    [middle, middle + 64],
    [2, middle],
  ];
}

function nameOf(headers: Readonly<Record<string, string>>, method = "GET"): string {
  return [method, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join(", ");
}

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

function rfc850(httpDate: string): string {
  const [, day, month, year, time] = /^\w+, (\d+) (\w+) \d\d(\d\d) ([\d:]+) GMT$/.exec(httpDate)!;
  return `${DAYS[new Date(httpDate).getUTCDay()]}, ${day}-${month}-${year} ${time} GMT`;
}

function asctime(httpDate: string): string {
  const [, name, day, month, year, time] = /^(\w+), (\d+) (\w+) (\d+) ([\d:]+) GMT$/.exec(httpDate)!;
  return `${name} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}`;
}
