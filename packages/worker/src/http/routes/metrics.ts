/** `GET /metrics`: the figures of `/v1/status` in the Prometheus text format, version 0.0.4. */
import type { Context } from "hono";
import { peerState } from "../../peers/cooperation.ts";
import { SECONDS_CLASSES, type Counts, type Durations } from "../traffic.ts";
import { isolateOf } from "../../runtime/isolate.ts";
import { quantileMs } from "../../regions/latency-histogram.ts";
import { popState } from "../../cache/pop-state-stub.ts";
import { currentEgress, currentSpending } from "../../cache/spending.ts";
import type { AppEnv } from "../http.ts";
import { settingsOf } from "../../runtime/settings.ts";
import { METRICS, type MetricName } from "../metric-catalogue.ts";

/** A value, and its labels beside `pop`. */
type Sample<L extends string> = readonly [Readonly<Record<L, string>>, number];

/** Answers with every metric of the PoP and of the isolate that answers. */
export async function metrics(c: Context<AppEnv>): Promise<Response> {
  const isolate = isolateOf(c.env);
  const settings = settingsOf(c.env);
  const { epoch, ledger, regions, lastPeriod, spending, fillEgress } = await popState(c.env).snapshot();
  const { hits, misses, malformed, kvFailures } = isolate.cache.counters;
  const text = new Exposition({ pop: settings.pop });
  text.add("agarose_configuration_epoch", [[{}, epoch]]);
  text.add("agarose_cache_capacity_bytes", [[{}, settings.cacheBytes]]);
  const cachedBytes = ledger.reduce((sum, entry) => sum + entry.chunks.length * entry.chunkBytes, 0);
  text.add("agarose_cache_bytes", [[{}, cachedBytes]]);
  const cachedObjects = ledger.filter(({ chunks }) => chunks.length > 0).length;
  text.add("agarose_cache_objects", [[{}, cachedObjects]]);
  const perRegion = (value: (region: (typeof regions)[number]) => number): Sample<"region">[] =>
    regions.map((region) => [{ region: region.name }, value(region)]);
  text.add(
    "agarose_region_latency_seconds",
    perRegion(({ meanMs }) => meanMs / 1000),
  );
  text.add(
    "agarose_region_bytes_per_second",
    perRegion(({ msPerByte }) => (msPerByte > 0 ? 1000 / msPerByte : 0)),
  );
  text.add(
    "agarose_region_latency_quantile_seconds",
    [0.5, 0.99].flatMap((q) =>
      regions.map(({ name, times }): Sample<"region" | "quantile"> => [
        { region: name, quantile: String(q) },
        (quantileMs(times, q) ?? 0) / 1000,
      ]),
    ),
  );
  text.add(
    "agarose_region_slow",
    perRegion(({ slow }) => Number(slow)),
  );
  text.add(
    "agarose_region_down",
    perRegion(({ down }) => Number(down)),
  );
  const { peers } = settings.peers ? await peerState(c.env).status() : { peers: [] };
  const perPeer = (value: (peer: (typeof peers)[number]) => number): Sample<"peer">[] =>
    peers.map((peer) => [{ peer: peer.name }, value(peer)]);
  text.add(
    "agarose_peer_latency_seconds",
    perPeer(({ meanMs }) => meanMs / 1000),
  );
  text.add(
    "agarose_peer_down",
    perPeer(({ down, silent }) => Number(down || silent)),
  );
  text.add(
    "agarose_peer_objects",
    perPeer(({ objects }) => objects),
  );
  text.add("agarose_isolate_stripe_reads_total", [
    [{ result: "hit" }, hits],
    [{ result: "miss" }, misses],
  ]);
  text.add("agarose_isolate_kv_failures_total", [[{}, kvFailures]]);
  text.add("agarose_isolate_malformed_values_total", [[{}, malformed]]);
  text.add("agarose_isolate_requests_total", labelled(isolate.traffic.requests, "route", "status"));
  text.addHistogram("agarose_isolate_request_duration_seconds", "route", isolate.traffic.durations);
  text.add("agarose_isolate_errors_total", labelled(isolate.traffic.errors, "code"));
  text.add("agarose_isolate_reads_total", labelled(isolate.traffic.reads, "kind"));
  text.add("agarose_isolate_bucket_requests_total", labelled(isolate.traffic.bucketRequests, "region", "outcome"));
  text.add("agarose_isolate_unusable_manifests_total", labelled(isolate.traffic.unusableManifests, "region", "code"));
  text.add("agarose_isolate_regions_behind_total", labelled(isolate.traffic.regionsBehind, "region"));
  text.add("agarose_isolate_unconfirmed_lookups_total", [[{}, isolate.traffic.unconfirmed]]);
  text.add("agarose_isolate_region_imbalance_ratio", [
    [{}, isolate.traffic.regionImbalancePercent(settings.regions.map(({ name }) => name)) / 100],
  ]);
  text.add("agarose_isolate_peer_requests_total", labelled(isolate.traffic.peerRequests, "peer", "outcome"));
  text.add("agarose_isolate_recovered_chunks_total", [[{}, isolate.traffic.recoveredChunks]]);
  text.add("agarose_isolate_decoded_shards_total", [[{}, isolate.traffic.decodedShards]]);
  const { led, followed } = isolate.coalescing.counters;
  text.add("agarose_isolate_stripes_decoded_total", [
    [{ by: "own" }, led],
    [{ by: "other" }, followed],
  ]);
  text.add(
    "agarose_isolate_breaker_open",
    settings.regions.map(({ name }) => [{ region: name }, Number(isolate.breakers.isOpen(name))]),
  );
  text.add("agarose_isolate_dropped_counts_total", [[{}, isolate.counter.dropped]]);
  const used = c.env.PROCESS?.usage();
  if (used) {
    text.add("process_resident_memory_bytes", [[{}, used.residentBytes]]);
    text.add("process_cpu_seconds_total", [[{}, used.cpuSeconds]]);
  }
  const { usd, writes, reads } = currentSpending(spending, Date.now());
  text.add("agarose_spending_month_usd", [[{}, usd]]);
  text.add("agarose_spending_month_operations", [
    [{ operation: "write" }, writes],
    [{ operation: "read" }, reads],
  ]);
  const { usdPerMonth } = settings.spending;
  if (Number.isFinite(usdPerMonth)) {
    text.add("agarose_spending_month_max_usd", [[{}, usdPerMonth]]);
  }
  text.add("agarose_fill_egress_day_bytes", [[{}, currentEgress(fillEgress, Date.now()).bytes]]);
  text.add("agarose_fill_egress_day_max_bytes", [[{}, settings.fillEgressBytesPerDay]]);
  const savings = lastPeriod?.savings;
  if (savings) {
    text.add("agarose_read_seconds", [[{}, savings.readMs / 1000]]);
    text.add(
      "agarose_saved_seconds",
      Object.entries(savings.savedMs).map(([idea, ms]) => [{ idea }, ms / 1000]),
    );
    if (savings.regretMs !== undefined) text.add("agarose_regret_seconds", [[{}, savings.regretMs / 1000]]);
    text.add(
      "agarose_read_egress_usd",
      Object.entries(savings.egressUsd).map(([egress, price]) => [{ egress }, price]),
    );
    text.add("agarose_recovered_chunks", [[{}, savings.recovered]]);
    text.add("agarose_region_imbalance_ratio", [[{}, savings.imbalancePercent / 100]]);
  }
  if (lastPeriod) {
    text.add("agarose_period_end_timestamp_seconds", [[{}, lastPeriod.at / 1000]]);
    text.add("agarose_period_duration_seconds", [[{}, lastPeriod.ms / 1000]]);
    text.add("agarose_period_operations", [[{}, lastPeriod.operations]]);
    text.add("agarose_period_errors", [[{}, lastPeriod.errors.length]]);
    text.add("agarose_period_stripes", [
      [{ change: "written" }, lastPeriod.written],
      [{ change: "evicted" }, lastPeriod.evicted],
      [{ change: "left" }, lastPeriod.left],
      [{ change: "waiting" }, lastPeriod.waiting],
      [{ change: "refused" }, lastPeriod.refused ?? 0],
    ]);
    text.add("agarose_period_fill_bytes", [
      [{ bytes: "fetched" }, lastPeriod.fetchedBytes ?? 0],
      [{ bytes: "filled" }, lastPeriod.filledBytes ?? 0],
    ]);
  }
  return new Response(text.toString(), { headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" } });
}

/** Returns counts whose names are joined by a space as samples with a label for each part. */
function labelled<L extends string>(counts: Counts, first: L, second?: L): Sample<L>[] {
  return [...counts].map(([name, count]) => {
    const at = second ? name.lastIndexOf(" ") : name.length;
    const labels = { [first]: name.slice(0, at), ...(second ? { [second]: name.slice(at + 1) } : {}) };
    return [labels as Record<L, string>, count];
  });
}

class Exposition {
  readonly #labels: Readonly<Record<string, string>>;
  #text = "";

  constructor(labels: Readonly<Record<string, string>>) {
    this.#labels = labels;
  }

  /** Adds a metric of the catalogue with a sample for each set of its labels. */
  add<N extends MetricName>(name: N, samples: readonly Sample<(typeof METRICS)[N]["labels"][number]>[]): void {
    this.#begin(name);
    for (const [labels, value] of samples) this.#sample(name, labels, value);
  }

  /** Adds a histogram of the catalogue for each value of its label. */
  addHistogram(name: MetricName, label: string, all: ReadonlyMap<string, Durations>): void {
    this.#begin(name);
    for (const [value, { seconds, count, atMost }] of all) {
      const labels = { [label]: value };
      for (const [i, end] of SECONDS_CLASSES.entries()) {
        this.#sample(`${name}_bucket`, { ...labels, le: String(end) }, atMost[i]!);
      }
      this.#sample(`${name}_bucket`, { ...labels, le: "+Inf" }, count);
      this.#sample(`${name}_sum`, labels, seconds);
      this.#sample(`${name}_count`, labels, count);
    }
  }

  #begin(name: MetricName): void {
    const { help, type } = METRICS[name];
    this.#text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
  }

  #sample(name: string, own: Readonly<Record<string, string>>, value: number): void {
    const labels = Object.entries({ ...this.#labels, ...own }).map(
      ([label, text]) => `${label}="${escapeLabel(text)}"`,
    );
    this.#text += `${name}{${labels.join(",")}} ${value}\n`;
  }

  toString(): string {
    return this.#text;
  }
}

function escapeLabel(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
}
