import { describe, expect, test } from "vitest";
import { guessLogFormat, parseScenario, sampleTrace, seededRandom, simulate, TraceBuilder } from "../index.ts";
import type { LogFormat, Trace } from "../index.ts";

function read(format: LogFormat, lines: string[], isStrict = false): Trace {
  const builder = new TraceBuilder({ format, isStrict, perSecond: 2 });
  for (const line of lines) builder.add(line);
  return builder.finish();
}

const S3 = (time: string, operation: string, key: string, status: number, size: string): string =>
  `79a59df900b949e5 examplebucket [${time}] 192.0.2.3 79a59df900b949e5 3E57427F33A59F07 ${operation} ${key} ` +
  `"GET /examplebucket/${key}?versioning HTTP/1.1" ${status} - 113 ${size} 7 - "-" "S3Console/0.4" - abc SigV4`;

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
    expect(trace.pop).toEqual(["fra", "fra"]);
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
    expect(trace.pop).toEqual(["one", "two"]);
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
  ])("counts a malformed %s line with its number, or refuses it when strict: %s", (format, bad) => {
    const good: Record<string, string[]> = {
      s3: [S3("06/Feb/2019:00:00:38 +0000", "REST.GET.OBJECT", "a", 200, "1")],
      logpush: ['{"ClientRequestPath":"/a","EdgeStartTimestamp":1}'],
      clf: ['127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 1'],
      csv: ["seconds,key", "1,a"],
    };
    const lines = [...good[format]!, bad];
    expect(read(format, lines).report).toMatchObject({
      reads: 1,
      malformedLines: 1,
      malformed: [{ line: lines.length, problem: expect.any(String) as string }],
    });
    expect(() => read(format, lines, true)).toThrow(
      expect.objectContaining({ code: "SCENARIO_INVALID", details: { line: lines.length } }),
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
  ])("%s", (format, lines) => {
    expect(guessLogFormat(lines)).toBe(format);
  });
});

describe("sampleTrace", () => {
  const random = seededRandom(4);
  const reads = Array.from({ length: 40_000 }, (_, i) => `${i},k${Math.floor(1000 ** random.next())},2000,one`);
  const trace = read("csv", ["seconds,key,bytes,pop", ...reads]);

  test("keeps all reads of some objects, about as many as wanted, in their order", () => {
    const { trace: sample, share } = sampleTrace(trace, 10_000);
    expect(share).toBeCloseTo(sample.keys.length / trace.keys.length, 12);
    expect(sample.object.length).toBeGreaterThan(5_000);
    expect(sample.object.length).toBeLessThan(20_000);
    const kept = new Set(sample.keys);
    const expected = Array.from(trace.object.keys()).filter((at) => kept.has(trace.keys[trace.object[at]!]!));
    expect([...sample.seconds]).toEqual(expected.map((at) => trace.seconds[at]));
    expect(Array.from(sample.object, (o) => sample.keys[o])).toEqual(
      expected.map((at) => trace.keys[trace.object[at]!]),
    );
  });

  test("a short log, or one of too few objects, is kept whole", () => {
    expect(sampleTrace(trace, 40_000)).toEqual({ trace, share: 1 });
    const few = read("csv", ["seconds,key", ...Array.from({ length: 5000 }, (_, i) => `${i},${i % 2}`)]);
    expect(sampleTrace(few, 100)).toEqual({ trace: few, share: 1 });
  });
});
