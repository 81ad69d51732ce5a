/** The dashboard and the alerts of `monitoring/` over what `/metrics` of a PoP really has. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  parseExposition,
  putObject,
  randomBytes,
  REGIONS,
  startBuckets,
  type BucketServer,
  type Metric,
} from "@agarose/worker/testing";
import { startPopProcess, type PopProcess } from "./start-pop-process.ts";

const MONITORING = fileURLToPath(new URL("../monitoring/", import.meta.url));
const ALERTS = join(MONITORING, "alerts.yml");
const ADMIN_TOKEN = "admin-token-of-16+";
/** Labels that Prometheus and alertmanager add to every series or alert. */
const ADDED_LABELS = ["instance", "job"];
/** Series of Prometheus itself. */
const OF_PROMETHEUS = ["up", "ALERTS"];

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

let folder: string;
let buckets: BucketServer;
let pop: PopProcess;
let exposed: Map<string, Metric>;
let panels: readonly Panel[];
let alerts: string;
let alertTests: string;
/** The exports of a scrubber, by its reference. */
let scrubGauges: readonly string[];

beforeAll(async () => {
  panels = (JSON.parse(await readFile(join(MONITORING, "grafana.json"), "utf8")) as { panels: Panel[] }).panels;
  alerts = await readFile(ALERTS, "utf8");
  alertTests = await readFile(join(MONITORING, "alerts.test.yml"), "utf8");
  const guide = await readFile(
    fileURLToPath(new URL("../../../docs/reference/events-and-metrics.md", import.meta.url)),
    "utf8",
  );
  scrubGauges = [...guide.matchAll(/^\| `(agarose_scrub_\w+)`/gm)].map(([, name]) => name!);
  folder = await mkdtemp(join(tmpdir(), "agarose-monitoring-"));
  buckets = await startBuckets();
  const variables = {
    POP: "own",
    REGIONS: JSON.stringify(REGIONS.map((name) => ({ name, url: `${buckets.url}/${name}` }))),
    ADMIN_TOKEN,
    UNSIGNED: "true",
    BUDGET_USD_PER_MONTH: "5",
    PEERS: JSON.stringify([{ name: "fra", url: "http://127.0.0.1:9" }]),
    PEER_KEY: "peer-key-of-16-and-more",
  };
  pop = await startPopProcess({ variables, folder, periodMs: 0 }, () => {});
  await putObject(buckets, "page", randomBytes(400_000));
  for (const key of ["page", "absent"]) await (await fetch(`${pop.url}/o/${key}`)).arrayBuffer();
  await pop.runPeriod();
  const response = await fetch(`${pop.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  exposed = parseExposition(await response.text());
});
afterAll(async () => {
  await pop?.kill();
  await buckets?.close();
  await rm(folder, { recursive: true, force: true });
});

/** All metrics that a text of PromQL names: words that nothing but a metric of ours begins like. */
function metricsIn(text: string): string[] {
  const names = [...text.matchAll(/\b(?:agarose_(?!isolate_…)|process_)[a-z0-9_]+/g)].map(([name]) => name);
  return [...new Set(names)];
}

/** The label matchers of each selector, as pairs of metric and label. */
function labelsIn(text: string): [metric: string, label: string][] {
  return [...text.matchAll(/\b((?:agarose|process)_[a-z0-9_]+)\{([^}]*)\}/g)].flatMap(([, metric, matchers]) =>
    [...matchers!.matchAll(/([a-z]+)(?:=~|!~|!=|=)"/g)].map(([, label]): [string, string] => [metric!, label!]),
  );
}

const expressions = (): string[] => panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** The metrics and labels of a text that no PoP has. */
function unknownIn(text: string): string[] {
  const isKnown = (name: string): boolean => exposed.has(name) || scrubGauges.includes(name);
  const metrics = metricsIn(text).filter((name) => !isKnown(name) && !OF_PROMETHEUS.includes(name));
  const labels = labelsIn(text).filter(([metric, label]) => {
    const samples = exposed.get(metric)?.samples ?? [];
    return samples.length > 0 && ![...ADDED_LABELS, ...Object.keys(samples[0]!.labels)].includes(label);
  });
  return [...metrics, ...labels.map(([metric, label]) => `${metric}{${label}}`)];
}

test("the dashboard, the alerts and their tests use metrics and labels that a PoP exports", () => {
  expect(expressions().length).toBeGreaterThan(25);
  expect(metricsIn(alerts).length).toBeGreaterThan(10);
  expect({
    dashboard: unknownIn(expressions().join("\n")),
    alerts: unknownIn(alerts),
    tests: unknownIn(alertTests),
  }).toEqual({ dashboard: [], alerts: [], tests: [] });
  expect(unknownIn('agarose_reads + agarose_region_down{bucket="a"}')).toEqual([
    "agarose_reads",
    "agarose_region_down{bucket}",
  ]);
});

test("legends name labels that their expressions have", () => {
  const wrong = panels.flatMap(({ title, targets = [] }) =>
    targets.flatMap(({ expr, legendFormat }) => {
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, labels]) => labels!.split(/, */));
      const metric = exposed.get(metricsIn(expr)[0]!)!;
      const known = grouped.length > 0 ? grouped : Object.keys(metric.samples[0]?.labels ?? {});
      return [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)]
        .map(([, label]) => label!)
        .filter((label) => !known.includes(label))
        .map((label) => `${title}: ${label}`);
    }),
  );
  expect(wrong).toEqual([]);
});

test("panels have ids of their own and do not overlap", () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const overlapping = panels.flatMap((one, i) =>
    panels.slice(i + 1).filter(({ gridPos: b }) => {
      const a = one.gridPos;
      return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
    }),
  );
  expect(overlapping).toEqual([]);
  expect(panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
});

test("the metrics of the process are those of this moment", () => {
  expect(exposed.get("process_resident_memory_bytes")!.samples[0]!.value).toBeGreaterThan(10e6);
  expect(exposed.get("process_cpu_seconds_total")!.samples[0]!.value).toBeGreaterThan(0);
});

test("every alert is seen to fire in the tests of promtool", () => {
  const names = [...alerts.matchAll(/alert: (\w+)/g)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !alertTests.includes(`alertname="${name}"`))).toEqual([]);
});

test("the guide lists the critical alerts", async () => {
  const guide = await readFile(fileURLToPath(new URL("../../../docs/guides/monitor.md", import.meta.url)), "utf8");
  const listed = [...guide.matchAll(/^\| `(Agarose\w+)`/gm)].map(([, name]) => name);
  const rules = [...alerts.matchAll(/alert: (\w+)[^]*?severity: (\w+)/g)];
  expect(listed).toEqual(rules.filter(([, , severity]) => severity === "critical").map(([, name]) => name));
});

// In CI these tests run, and fail where promtool is missing.
const isSkipped = !process.env["CI"] && spawnSync("promtool", ["--version"]).status !== 0;
const reason = isSkipped ? " (skipped: no promtool here, which Debian's package prometheus has)" : "";
const promtool = (...args: string[]): string => execFileSync("promtool", args, { cwd: MONITORING, encoding: "utf8" });

test.skipIf(isSkipped)(`promtool accepts the alerts, and they fire when they should${reason}`, () => {
  expect(promtool("check", "rules", ALERTS)).toContain("SUCCESS");
  expect(promtool("test", "rules", "alerts.test.yml")).toContain("SUCCESS");
  expect(promtool("check", "rules", "scrub-alerts.yml")).toContain("SUCCESS");
  expect(promtool("test", "rules", "scrub-alerts.test.yml")).toContain("SUCCESS");
});

test.skipIf(isSkipped)(`promtool accepts each expression of the dashboard${reason}`, async () => {
  const rules = expressions().map((expr, i) => ({
    record: `panel:${i}`,
    expr: expr.replaceAll("$__rate_interval", "5m"),
  }));
  const path = join(folder, "dashboard.yml");
  await writeFile(path, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
  expect(promtool("check", "rules", path)).toContain(`${rules.length} rules found`);
});
