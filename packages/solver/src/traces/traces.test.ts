import { parse } from "csv-parse/sync";
import { describe, expect, test } from "vitest";
import { dataOfLog } from "../advisor/log-data.ts";
import { seededRandom } from "../random.ts";
import { parseScenario, withCacheFactor } from "../simulator/scenario/scenario.ts";
import { simulate, type SimulationRow } from "../simulator/simulate.ts";
import { guessLogFormat } from "./log-formats.ts";
import { sampleTrace } from "./trace.ts";
import { TraceBuilder, type Trace, type TraceOptions } from "./trace.ts";
import type { LogFormat, LogRecord } from "./log-formats.ts";

function read(format: LogFormat, lines: string[], options: TraceOptions = {}): Trace {
  const builder = new TraceBuilder({ perSecond: 2, ...options });
  builder.begin("the.log", format);
  if (format === "csv") for (const [i, record] of recordsOf(lines).entries()) builder.add(record, i + 2);
  else for (const line of lines) builder.add(line);
  return builder.finish();
}

function recordsOf(lines: readonly string[]): LogRecord[] {
  return parse(lines.join("\n"), { columns: true, relax_column_count: true, relax_quotes: true });
}

/** The name of the PoP of each read. */
function popsOf({ pop, pops }: Trace): (string | undefined)[] {
  return Array.from(pop, (index) => pops[index]);
}

const S3 = (time: string, operation: string, key: string, status: number, size: string): string =>
  `79a59df900b949e5 examplebucket [${time}] 192.0.2.3 79a59df900b949e5 3E57427F33A59F07 ${operation} ${key} ` +
  `"GET /examplebucket/${key}?versioning HTTP/1.1" ${status} - 113 ${size} 7 - "-" "S3Console/0.4" - abc SigV4`;

const CLOUDFRONT_HEAD = [
  "#Version: 1.0",
  "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status",
];
const cloudFront = (time: string, stem: string, status: number): string =>
  ["2026-01-01", time, "FRA56-P4", 12_345, "192.0.2.1", "GET", "d1.example", stem, status].join("\t");

describe("TraceBuilder", () => {
  test("S3 server access log: reads only, in order of time, with the objects' sizes", () => {
    const trace = read("s3", [
      S3("06/Feb/2019:00:00:38 +0000", "REST.GET.OBJECT", "b.jpg", 200, "2000"),
      S3("06/Feb/2019:00:00:36 +0000", "REST.GET.OBJECT", "a.jpg", 206, "1000"),
      S3("06/Feb/2019:00:00:39 +0000", "REST.PUT.OBJECT", "c.jpg", 200, "5"),
      S3("06/Feb/2019:00:00:40 +0000", "REST.GET.OBJECT", "d.jpg", 404, "-"),
      S3("06/Feb/2019:01:00:41 +0100", "REST.GET.OBJECT", "a.jpg", 200, "-"),
    ]);
    expect(trace.keys).toEqual(["b.jpg", "a.jpg"]);
    expect([...trace.object]).toEqual([1, 0, 1]);
    expect([...trace.seconds]).toEqual([0, 2, 5]);
    expect([...trace.bytes]).toEqual([2000, 1000]);
    expect(trace.report).toMatchObject({ lines: 5, reads: 3, otherLines: 2, malformedLines: 0 });
  });

  test("Cloudflare Logpush: RFC 3339 and nanoseconds, the PoP from the colo code", () => {
    const line = (stamp: unknown, path: string, status = 200): string =>
      JSON.stringify({
        EdgeStartTimestamp: stamp,
        ClientRequestMethod: "GET",
        ClientRequestPath: path,
        EdgeResponseStatus: status,
        EdgeResponseBytes: 300,
        EdgeColoCode: "FRA",
      });
    const trace = read("logpush", [
      line("2023-11-14T22:13:20Z", "/a"),
      line(1_700_000_001_500_000_000, "/b"),
      line(1_700_000_003, "/a", 503),
    ]);
    expect(trace.keys).toEqual(["/a", "/b"]);
    expect(trace.seconds[1]).toBeCloseTo(1.5, 3);
    expect(popsOf(trace)).toEqual(["fra", "fra"]);
    expect(trace.report.otherLines).toBe(1);
  });

  test("Common and Combined Log Format", () => {
    const trace = read("clf", [
      '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326',
      '127.0.0.1 - - [10/Oct/2000:13:55:38 -0700] "GET /apache_pb.gif HTTP/1.0" 304 - "http://example.com/a b" "Mozilla/4.08"',
      '127.0.0.1 - - [10/Oct/2000:13:55:39 -0700] "POST /form HTTP/1.0" 200 12',
    ]);
    expect(trace.keys).toEqual(["/apache_pb.gif"]);
    expect([...trace.seconds]).toEqual([0, 2]);
    expect([...trace.bytes]).toEqual([2326]);
  });

  test("YCSB has no times: reads are evenly spaced", () => {
    const trace = read("ycsb", [
      "[OVERALL], RunTime(ms), 1",
      "READ usertable user1 [ <all fields>]",
      "UPDATE usertable user2 [ x ]",
      "READ usertable user3 [ <all fields>]",
    ]);
    expect(trace.keys).toEqual(["user1", "user3"]);
    expect([...trace.seconds]).toEqual([0, 0.5]);
  });

  test("CSV by its header, with quoted cells", () => {
    const trace = read("csv", ["time,key,size,pop", '0,"a,""b""",10,one', "2.5,c,,two"]);
    expect(trace.keys).toEqual(['a,"b"', "c"]);
    expect([...trace.seconds]).toEqual([0, 2.5]);
    // An unknown size is taken as the median of the known ones.
    expect([...trace.bytes]).toEqual([10, 10]);
    expect(popsOf(trace)).toEqual(["one", "two"]);
  });

  test("CloudFront: columns by their header, both encodings undone, the PoP from the edge location", () => {
    const trace = read("cloudfront", [
      ...CLOUDFRONT_HEAD,
      cloudFront("00:00:01", "/a%2520b.jpg", 200),
      cloudFront("00:00:03", "/a%2520b.jpg", 304),
      cloudFront("00:00:04", "/gone.jpg", 404),
    ]);
    expect(trace.keys).toEqual(["/a b.jpg"]);
    expect([...trace.seconds]).toEqual([0, 2]);
    expect([...trace.bytes]).toEqual([12_345]);
    expect(popsOf(trace)).toEqual(["fra", "fra"]);
    expect(trace.report).toMatchObject({ reads: 2, otherLines: 3 });
  });

  test("Fastly: its default format behind a syslog prefix, and JSON", () => {
    const trace = read("fastly", [
      '<134>2026-01-01T00:00:00Z cache-sjc3128 name[62959]: 192.0.2.1 "-" "-" [01/Jan/2026:00:00:00 +0000] "GET /a?v=1 HTTP/1.1" 200 10',
      '{"timestamp":"2026-01-01T00:00:05+0000","request_method":"GET","url":"/a?v=2","response_status":200,"response_body_size":20,"fastly_server":"cache-fra-etou8220041-FRA"}',
    ]);
    expect(trace.keys).toEqual(["/a"]);
    expect([...trace.seconds]).toEqual([0, 5]);
    expect([...trace.bytes]).toEqual([20]);
    expect(popsOf(trace)).toEqual(["sjc", "fra"]);
  });

  test("a query string is no part of the key, as for readers, and neither is percent-encoding", () => {
    const line = (target: string): string =>
      `192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] "GET ${target} HTTP/1.1" 200 10`;
    const targets = ["/a.js?v=1", "/a.js?v=2", "/a.js", "http://host/a.js?x=/y", "/%61.js", "/100%.js"];
    expect(read("clf", targets.map(line)).keys).toEqual(["/a.js", "/100%.js"]);
    const logpush = { ClientRequestURI: "/a.js?v=3", EdgeStartTimestamp: 1 };
    expect(read("logpush", [JSON.stringify(logpush)]).keys).toEqual(["/a.js"]);
    expect(read("csv", ["seconds,path", "1,/a.js?v=4"]).keys).toEqual(["/a.js"]);
    // A key is what the store has, and may have any character.
    expect(read("csv", ["seconds,key", "1,a?b%20c"]).keys).toEqual(["a?b%20c"]);
  });

  test("several logs become one, in the order of time", () => {
    const builder = new TraceBuilder();
    builder.begin("one.log", "clf");
    builder.add('192.0.2.1 - - [01/Jan/2026:00:00:09 +0000] "GET /a HTTP/1.1" 200 10');
    builder.begin("two.log", "cloudfront");
    for (const line of [...CLOUDFRONT_HEAD, cloudFront("00:00:01", "/b", 200), "bad"]) builder.add(line);
    const trace = builder.finish();
    expect(trace.keys).toEqual(["/a", "/b"]);
    expect([...trace.object]).toEqual([1, 0]);
    expect([...trace.seconds]).toEqual([0, 8]);
    expect(trace.report.malformed).toMatchObject([{ file: "two.log", line: 4 }]);
  });

  test.each<[LogFormat, string]>([
    ["s3", "not a log line"],
    ["s3", S3("yesterday", "REST.GET.OBJECT", "a", 200, "1")],
    ["logpush", "{"],
    ["logpush", '{"ClientRequestPath":"/a"}'],
    ["logpush", "null"],
    ["clf", '127.0.0.1 - - [10/Foo/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 1'],
    ["clf", '127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "-" 400 0'],
    ["csv", "nonsense,"],
    ["cloudfront", "2026-01-01\t00:00:00"],
    ["fastly", '{"timestamp":"2026-01-01T00:00:00Z"}'],
  ])("counts a malformed %s line with its number, or refuses it when strict: %s", (format, bad) => {
    const good: Record<string, string[]> = {
      s3: [S3("06/Feb/2019:00:00:38 +0000", "REST.GET.OBJECT", "a", 200, "1")],
      logpush: ['{"ClientRequestPath":"/a","EdgeStartTimestamp":1}'],
      clf: ['127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 1'],
      csv: ["seconds,key", "1,a"],
      cloudfront: [...CLOUDFRONT_HEAD, cloudFront("00:00:01", "/a", 200)],
      fastly: ['{"timestamp":"2026-01-01T00:00:00Z","url":"/a","response_status":200}'],
    };
    const lines = [...good[format]!, bad];
    expect(read(format, lines).report).toMatchObject({
      reads: 1,
      malformedLines: 1,
      malformed: [{ file: "the.log", line: lines.length, problem: expect.any(String) as string }],
    });
    expect(() => read(format, lines, { isStrict: true })).toThrow(
      expect.objectContaining({ code: "SCENARIO_INVALID", details: { file: "the.log", line: lines.length } }),
    );
  });

  test("a log without reads is refused", () => {
    expect(() => read("clf", [""])).toThrow(expect.objectContaining({ code: "SCENARIO_INVALID" }));
  });
});

describe("simulating a log", () => {
  const scenario = parseScenario({
    code: { k: 2, m: 1 },
    objects: { count: 1, bytes: 1 },
    regions: ["near", "middle", "far"],
    pops: ["one", "two"].map((name) => ({
      name,
      regionLatencyMs: { near: 50, middle: 100, far: 300 },
      cacheLatencyMs: 5,
      capacityBytes: 3000,
    })),
    popularity: { type: "uniform" },
    requests: { perSecond: 1, count: 1 },
    policies: ["backend", "lru", "adaptive", "clairvoyant"].map((name) => ({ name })),
  });

  test("plays every read once, at the PoP the log names", () => {
    const lines = [
      "seconds,key,bytes,pop",
      ...Array.from({ length: 900 }, (_, i) => `${i},k${(i * i) % 7},2000,${i % 3 === 0 ? "ONE" : "two"}`),
    ];
    const rows = simulate(scenario, { trace: read("csv", lines) });
    const reads = (name: string, pop: string): number =>
      rows.find((row) => row.name === name && row.pop === pop)!.reads;
    expect(reads("backend", "one")).toBe(300);
    expect(reads("backend", "all")).toBe(900);
    const mean = (name: string): number => rows.find((row) => row.name === name && row.pop === "all")!.meanMs;
    expect(mean("backend")).toBe(100);
    expect(mean("adaptive")).toBeLessThan(70);
    expect(mean("clairvoyant")).toBeLessThanOrEqual(mean("adaptive"));
  });
});

describe("guessLogFormat", () => {
  const PUT = S3("06/Feb/2019:00:00:39 +0000", "REST.PUT.OBJECT", "c.jpg", 200, "5");
  test.each<[LogFormat | undefined, string[]]>([
    ["s3", [S3("06/Feb/2019:00:00:38 +0000", "REST.GET.OBJECT", "b.jpg", 200, "2000"), PUT]],
    ["logpush", ['{"ClientRequestPath":"/a","EdgeStartTimestamp":1}']],
    ["clf", ['127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 1']],
    ["clf", ['127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 1 "-" "curl"', "a malformed line"]],
    ["csv", ["time,key,size", "0,a,10"]],
    ["ycsb", ["READ usertable user1 [ <all fields>]", "UPDATE usertable user2 [ x ]", "READ usertable user3 [ x ]"]],
    [undefined, ['{"code":{"k":2,"m":1},"regions":["a"]}']],
    [undefined, ["{", '  "extends": "stationary.json"', "}"]],
    [undefined, ["the quick brown fox", "", "jumps"]],
    [undefined, []],
    ["cloudfront", [...CLOUDFRONT_HEAD, cloudFront("00:00:01", "/a", 200)]],
    ["fastly", ['{"timestamp":"2026-01-01T00:00:00Z","url":"/a","response_status":200}']],
  ])("%s", (format, lines) => {
    expect(guessLogFormat(lines, recordsOf(lines))).toBe(format);
  });
});

describe("samples", () => {
  const random = seededRandom(4);
  const reads = Array.from({ length: 40_000 }, (_, i) => `${i},k${Math.floor(20_000 ** random.next())},2000,one`);
  const lines = ["seconds,key,bytes,pop", ...reads];
  const trace = read("csv", lines);

  /** Checks that `sample` has all reads of its objects, in their order, and that its share is right. */
  function expectSample(sample: Trace): void {
    const kept = new Set(sample.keys);
    const expected = Array.from(trace.object.keys()).filter((at) => kept.has(trace.keys[trace.object[at]!]!));
    const [fromSample, fromTrace] = [sample.seconds[0]!, trace.seconds[expected[0]!]!];
    const times = Array.from(sample.seconds, (at) => at - fromSample);
    expect(times).toEqual(expected.map((at) => trace.seconds[at]! - fromTrace));
    expect(Array.from(sample.object, (o) => sample.keys[o])).toEqual(
      expected.map((at) => trace.keys[trace.object[at]!]),
    );
    expect(sample.keys.length / trace.keys.length / sample.share).toBeGreaterThan(0.9);
    expect(sample.keys.length / trace.keys.length / sample.share).toBeLessThan(1.1);
  }

  test("sampleTrace keeps all reads of some objects, about as many as wanted, in their order", () => {
    const sample = sampleTrace(trace, 10_000);
    expect(sample.object.length).toBeGreaterThan(5_000);
    expect(sample.object.length).toBeLessThan(20_000);
    expectSample(sample);
  });

  test("a log is sampled while it is read, as if its length had been known, and all of its reads are counted", () => {
    const sample = read("csv", lines, { readsMax: 10_000 });
    expect(sample.share).toBeLessThan(1);
    expect(sample.object.length).toBeLessThanOrEqual(10_000);
    expect(sample.report).toMatchObject({ reads: 40_000, readsKept: sample.object.length });
    expectSample(sample);
    expectSample(sampleTrace(sample, 2_500));
    // The first and last read may be of objects that are not in the sample.
    expect(dataOfLog(sample).readsPerMonth / dataOfLog(trace).readsPerMonth).toBeCloseTo(1, 2);
    expect(dataOfLog(sample).objects / trace.keys.length).toBeCloseTo(1, 1);
  });

  test("a sample whose choice missed hot objects gives the whole log's hits, because their reads count as hits", () => {
    const scenario = parseScenario({
      code: { k: 2, m: 1 },
      objects: { count: 1, bytes: 1 },
      regions: ["near", "middle", "far"],
      pops: [
        {
          name: "one",
          regionLatencyMs: { near: 50, middle: 100, far: 300 },
          cacheLatencyMs: 5,
          capacityBytes: 200 * trace.keys.length,
        },
      ],
      popularity: { type: "uniform" },
      requests: { perSecond: 1, count: 1 },
      policies: [{ name: "lru" }],
    });
    const play = (played: Trace): SimulationRow =>
      simulate(withCacheFactor(scenario, played.share), { trace: played }).at(-1)!;
    const sample = sampleTrace(trace, 10_000);
    const [whole, sampled] = [play(trace), play(sample)];
    // The luck of this choice is worth more than the error that is left.
    expect(Math.abs(sample.object.length / (sample.share * trace.object.length) - 1)).toBeGreaterThan(0.04);
    expect(Math.abs(sampled.fullHitRatio - whole.fullHitRatio)).toBeLessThan(0.02);
    expect(Math.abs(sampled.meanMs / whole.meanMs - 1)).toBeLessThan(0.04);
  });

  test("a short log, or one of too few objects, is kept whole", () => {
    expect(sampleTrace(trace, 40_000)).toBe(trace);
    const few = ["seconds,key", ...Array.from({ length: 5000 }, (_, i) => `${i},${i % 2}`)];
    expect(read("csv", few, { readsMax: 100 })).toMatchObject({ share: 1, object: { length: 5000 } });
    const whole = read("csv", few);
    expect(sampleTrace(whole, 100)).toBe(whole);
  });
});
