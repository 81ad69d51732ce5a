/** The reads that a server logs come back in each format, and lines in the form of the manuals are recognised. */
import { parse } from "csv-parse/sync";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { guessLogFormat } from "./log-formats.ts";
import type { LogFormat, LogRecord } from "./log-formats.ts";
import { TraceBuilder, type Trace } from "./trace.ts";

interface Request {
  readonly key: string;
  /** Since 1970. */
  readonly seconds: number;
  readonly bytes: number;
  readonly status: number;
  readonly query: string;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/** 06/Feb/2019:00:00:38 +0000 */
const clfTime = (seconds: number): string => {
  const [date, time] = new Date(seconds * 1000).toISOString().split(/[T.]/) as [string, string];
  const [year, month, day] = date.split("-");
  return `${day}/${MONTHS[Number(month) - 1]}/${year}:${time} +0000`;
};
const path = ({ key }: Request): string => `/${encodeURIComponent(key)}`;
const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
const CLOUDFRONT = "#Fields: date time x-edge-location sc-bytes cs-method cs(Host) cs-uri-stem sc-status cs-uri-query";

/** How each format writes a request; in none but CSV and S3's own does the key come without a slash before it. */
const WRITERS: Readonly<Record<Exclude<LogFormat, "ycsb">, (request: Request) => string>> = {
  s3: ({ key, seconds, bytes, status }) =>
    `79a59df9 bucket [${clfTime(seconds)}] 192.0.2.3 - 3E57427F REST.GET.OBJECT ${encodeURIComponent(key)} ` +
    `"GET /bucket/x HTTP/1.1" ${status} - ${bytes} ${bytes} 7 - "-" "agent \\"a\\"" -`,
  logpush: (request) =>
    JSON.stringify({
      ClientRequestURI: `${path(request)}${request.query}`,
      EdgeStartTimestamp: request.seconds * 1e9,
      ClientRequestMethod: "GET",
      EdgeResponseStatus: request.status,
      EdgeResponseBytes: request.bytes,
    }),
  cloudfront: (request) => {
    const [date, time] = new Date(request.seconds * 1000).toISOString().split(/[T.]/);
    const stem = encodeURIComponent(path(request)).replaceAll("%2F", "/");
    return [date, time, "FRA56-P4", request.bytes, "GET", "d1", stem, request.status, request.query || "-"].join("\t");
  },
  fastly: (request) =>
    `<134>2026-01-01T00:00:00Z cache-fra-etou8220041 logs[1]: 192.0.2.1 "-" "-" [${clfTime(request.seconds)}] ` +
    `"GET ${path(request)}${request.query} HTTP/1.1" ${request.status} ${request.bytes}`,
  clf: (request) =>
    `192.0.2.1 - - [${clfTime(request.seconds)}] "GET ${path(request)}${request.query} HTTP/1.1" ${request.status} ` +
    `${request.bytes} "https://example.com/?a=b" "agent \\"a\\""`,
  csv: ({ key, seconds, bytes }) => `${quoted(key)},${seconds},${bytes}`,
};
const HEADS: Partial<Record<LogFormat, string>> = { csv: "key,seconds,bytes", cloudfront: CLOUDFRONT };

function read(format: LogFormat, files: readonly string[]): Trace {
  const builder = new TraceBuilder({ isStrict: true });
  for (const [i, text] of files.entries()) {
    builder.begin(`log-${i}`, format);
    if (format !== "csv") for (const line of text.split("\n")) builder.add(line);
    else for (const record of parse(text, { columns: true }) as LogRecord[]) builder.add(record);
  }
  return builder.finish();
}

const request: fc.Arbitrary<Request> = fc.record({
  key: fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }).filter((key) => key.trim() === key),
  // Nanoseconds of such a time have no exact number: whole seconds come near enough.
  seconds: fc.integer({ min: 1_500_000_000, max: 1_500_000_900 }),
  bytes: fc.integer({ min: 1, max: 1e9 }),
  status: fc.constantFrom(200, 206, 304, 404, 503),
  query: fc.constantFrom("", "?v=1", "?v=2&w=/x", "?"),
});

test.each(Object.keys(WRITERS) as (keyof typeof WRITERS)[])(
  "%s: keys, times and sizes come back, whatever characters keys have and however the log is cut into files",
  (format) => {
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 30 }), fc.nat(30), (requests, cut) => {
        const isServed = ({ status }: Request): boolean => format === "csv" || status < 400;
        const served = requests.filter(isServed);
        fc.pre(served.length > 0);
        const parts = [requests.slice(0, cut), requests.slice(cut)].filter((part) => part.length > 0);
        const head = HEADS[format] === undefined ? [] : [HEADS[format]];
        const trace = read(
          format,
          parts.map((part) => [...head, ...part.map(WRITERS[format])].join("\n")),
        );
        const slash = format === "s3" || format === "csv" ? "" : "/";
        const inOrder = served.toSorted((a, b) => a.seconds - b.seconds);
        expect(Array.from(trace.object, (object) => trace.keys[object])).toEqual(
          inOrder.map(({ key }) => `${slash}${key}`),
        );
        for (const [i, seconds] of trace.seconds.entries()) {
          expect(seconds).toBeCloseTo(inOrder[i]!.seconds - inOrder[0]!.seconds, 3);
        }
        for (const [object, key] of trace.keys.entries()) {
          const sizes = served.filter((one) => `${slash}${one.key}` === key).map(({ bytes }) => bytes);
          expect(trace.bytes[object]).toBe(Math.max(...sizes));
        }
      }),
    );
  },
);

/** In the form that the manuals print: AWS on S3 and CloudFront, Cloudflare, Fastly, Apache, YCSB. */
const DOCUMENTED: readonly (readonly [LogFormat, readonly string[], readonly string[]])[] = [
  [
    "s3",
    [
      '79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be amzn-s3-demo-bucket1 [06/Feb/2019:00:00:38 +0000] 192.0.2.3 79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be 3E57427F3EXAMPLE REST.GET.VERSIONING - "GET /amzn-s3-demo-bucket1?versioning HTTP/1.1" 200 - 113 - 7 - "-" "S3Console/0.4" - s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/XV/VLi31234= SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader amzn-s3-demo-bucket1.s3.us-west-1.amazonaws.com TLSV1.2 arn:aws:s3:us-west-1:123456789012:accesspoint/example-AP Yes us-east-1',
      '79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be amzn-s3-demo-bucket1 [06/Feb/2019:00:00:38 +0000] 192.0.2.3 79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be A1206F460EXAMPLE REST.GET.OBJECT s3-dg.pdf "GET /amzn-s3-demo-bucket1/s3-dg.pdf HTTP/1.1" 200 - 4406583 4406583 60 28 "-" "S3Console/0.4" - BNaBsXZQQDbssi6xMBdBU2sLt+Yf5kZDmeBUP35sFoKa3sLLeMC78iwEIWxs99CRUrbS4n11234= SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader amzn-s3-demo-bucket1.s3.us-west-1.amazonaws.com TLSV1.2 - Yes us-east-1',
    ],
    ["s3-dg.pdf"],
  ],
  [
    "cloudfront",
    [
      "#Version: 1.0",
      "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len sc-range-start sc-range-end",
      "2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t/index.html\t200\t-\tMozilla/5.0%20(Windows%20NT%2010.0)\t-\t-\tHit\tSOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==\td111111abcdef8.cloudfront.net\thttps\t23\t0.001\t-\tTLSv1.2\tECDHE-RSA-AES128-GCM-SHA256\tHit\tHTTP/2.0\t-\t-\t11040\t0.001\tHit\ttext/html\t78\t-\t-",
    ],
    ["/index.html"],
  ],
  [
    "logpush",
    [
      '{"ClientIP":"192.0.2.1","ClientRequestHost":"example.com","ClientRequestMethod":"GET","ClientRequestURI":"/page/?x=1","EdgeEndTimestamp":"2018-05-20T09:58:09Z","EdgeResponseBytes":69045,"EdgeResponseStatus":200,"EdgeStartTimestamp":"2018-05-20T09:58:09Z","RayID":"41ddf1740f67442d"}',
    ],
    ["/page/"],
  ],
  [
    "fastly",
    [
      '{"timestamp":"2016-07-04T22:37:26+0000","client_ip":"192.0.2.1","geo_country":"germany","geo_city":"berlin","host":"www.example.com","url":"/img/a.jpg?w=2","request_method":"GET","request_protocol":"HTTP/1.1","request_referer":"","request_user_agent":"curl/8","response_state":"HIT","response_status":200,"response_reason":"OK","response_body_size":4242,"fastly_server":"cache-sjc3128-SJC","fastly_is_edge":true}',
      '<134>2016-07-04T22:37:27Z cache-sjc3128 LogTest[62959]: 192.0.2.1 "-" "-" [04/Jul/2016:22:37:27 +0000] "GET /img/a.jpg HTTP/1.1" 200 4242',
    ],
    ["/img/a.jpg"],
  ],
  [
    "clf",
    [
      '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"',
    ],
    ["/apache_pb.gif"],
  ],
  ["ycsb", ["READ usertable user6284781860667377211 [ <all fields>]"], ["user6284781860667377211"]],
];

test.each(DOCUMENTED)("%s: the lines of its manual are recognised and read", (format, lines, keys) => {
  expect(guessLogFormat(lines)).toBe(format);
  expect(read(format, [lines.join("\n")]).keys).toEqual(keys);
});
