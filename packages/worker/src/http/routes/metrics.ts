/** `GET /metrics`: the figures of `/v1/status` in the Prometheus text format, version 0.0.4. */
import type { Context } from "hono";
import { peerState } from "../../peers/cooperation.ts";
import type { Counts } from "../../platform/traffic.ts";
import { isolateOf } from "../../read/isolate.ts";
import { quantileMs } from "../../region-manager/latency-histogram.ts";
import { popState } from "../../state/pop-state-stub.ts";
import { currentSpending } from "../../state/spending.ts";
import type { AppEnv } from "../http.ts";
import { settingsOf } from "../settings.ts";

type Labels = Readonly<Record<string, string>>;

/** Answers with every metric of the PoP and of the isolate that answers. */
export async function metrics(c: Context<AppEnv>): Promise<Response> {
  const isolate = isolateOf(c.env);
  const settings = settingsOf(c.env);
  const { epoch, ledger, regions, lastPeriod, spending } = await popState(c.env).snapshot();
  const { hits, misses, malformed, kvFailures } = isolate.cache.counters;
  const text = new Exposition({ pop: settings.pop });
  text.gauge("agarose_configuration_epoch", "Number of the configuration in force.", [[{}, epoch]]);
  text.gauge("agarose_cache_capacity_bytes", "Capacity of the chunk cache.", [[{}, settings.cacheBytes]]);
  const cachedBytes = ledger.reduce((sum, entry) => sum + entry.chunks.length * entry.chunkBytes, 0);
  text.gauge("agarose_cache_bytes", "Chunk bytes that readers are promised.", [[{}, cachedBytes]]);
  const cachedObjects = ledger.filter(({ chunks }) => chunks.length > 0).length;
  text.gauge("agarose_cache_objects", "Objects with at least one chunk cached.", [[{}, cachedObjects]]);
  const perRegion = (value: (region: (typeof regions)[number]) => number): [Labels, number][] =>
    regions.map((region) => [{ region: region.name }, value(region)]);
  text.gauge(
    "agarose_region_latency_ms",
    "Mean time to the first byte of a chunk.",
    perRegion(({ meanMs }) => meanMs),
  );
  text.gauge(
    "agarose_region_bytes_per_second",
    "Transfer rate after the first byte; 0 while unknown.",
    perRegion(({ msPerByte }) => (msPerByte > 0 ? 1000 / msPerByte : 0)),
  );
  text.gauge(
    "agarose_region_latency_quantile_ms",
    "Time that a share of the probes and reads did not exceed.",
    [0.5, 0.99].flatMap((q) =>
      regions.map(({ name, times }): [Labels, number] => [
        { region: name, quantile: String(q) },
        quantileMs(times, q) ?? 0,
      ]),
    ),
  );
  text.gauge(
    "agarose_region_slow",
    "1 while the region takes much longer than usual.",
    perRegion(({ slow }) => Number(slow)),
  );
  text.gauge(
    "agarose_region_down",
    "1 while the region does not answer probes.",
    perRegion(({ down }) => Number(down)),
  );
  const { peers } = settings.peers ? await peerState(c.env).status() : { peers: [] };
  const perPeer = (value: (peer: (typeof peers)[number]) => number): [Labels, number][] =>
    peers.map((peer) => [{ peer: peer.name }, value(peer)]);
  text.gauge(
    "agarose_peer_latency_ms",
    "Mean round trip to another PoP.",
    perPeer(({ meanMs }) => meanMs),
  );
  text.gauge(
    "agarose_peer_down",
    "1 while the PoP does not answer probes, or has sent no message for three periods.",
    perPeer(({ down, silent }) => Number(down || silent)),
  );
  text.gauge(
    "agarose_peer_objects",
    "Objects of which the PoP reports to hold chunks.",
    perPeer(({ objects }) => objects),
  );
  text.counter("agarose_isolate_stripe_reads_total", "Stripes looked up in the chunk cache by this isolate.", [
    [{ result: "hit" }, hits],
    [{ result: "miss" }, misses],
  ]);
  text.counter("agarose_isolate_kv_failures_total", "KV reads that failed or hung, in this isolate.", [
    [{}, kvFailures],
  ]);
  text.counter("agarose_isolate_malformed_values_total", "KV values that were not frames, in this isolate.", [
    [{}, malformed],
  ]);
  text.counter(
    "agarose_isolate_requests_total",
    "Requests answered by this isolate.",
    labelled(isolate.traffic.requests, "route", "status"),
  );
  text.counter(
    "agarose_isolate_errors_total",
    "Requests that this isolate refused, by error code.",
    labelled(isolate.traffic.errors, "code"),
  );
  text.counter(
    "agarose_isolate_reads_total",
    "Objects decoded by this isolate, by where their first chunks came from.",
    labelled(isolate.traffic.reads, "kind"),
  );
  text.counter(
    "agarose_isolate_bucket_requests_total",
    "Chunk requests of this isolate to buckets, by how they ended.",
    labelled(isolate.traffic.bucketRequests, "region", "outcome"),
  );
  text.gauge(
    "agarose_isolate_region_imbalance_percent",
    "How far the requests of this isolate to the busiest region are above the mean of all regions.",
    [[{}, isolate.traffic.regionImbalancePercent(settings.regions.map(({ name }) => name))]],
  );
  text.counter(
    "agarose_isolate_peer_requests_total",
    "Chunk requests of this isolate to other PoPs, by how they ended.",
    labelled(isolate.traffic.peerRequests, "peer", "outcome"),
  );
  text.counter(
    "agarose_isolate_recovered_chunks_total",
    "Cached data chunks of regions that are down, delivered instead of a decode, by this isolate.",
    [[{}, isolate.traffic.recoveredChunks]],
  );
  text.counter("agarose_isolate_decoded_shards_total", "Data shards that reads of this isolate decoded.", [
    [{}, isolate.traffic.decodedShards],
  ]);
  const { led, followed } = isolate.coalescing.counters;
  text.counter("agarose_isolate_stripes_decoded_total", "Stripes read for objects, on their own or by another read.", [
    [{ by: "own" }, led],
    [{ by: "other" }, followed],
  ]);
  text.gauge(
    "agarose_isolate_breaker_open",
    "1 while this isolate asks the region last.",
    settings.regions.map(({ name }) => [{ region: name }, Number(isolate.breakers.isOpen(name))]),
  );
  text.counter(
    "agarose_isolate_region_waits_total",
    "Requests to buckets that had to wait because too many to their region were in flight (REGION_REQUESTS_MAX).",
    [[{}, isolate.limits.waited]],
  );
  text.counter("agarose_isolate_dropped_reports_total", "Telemetry reports dropped for lack of memory.", [
    [{}, isolate.telemetry.dropped],
  ]);
  text.counter("agarose_isolate_dropped_counts_total", "Requests not counted for lack of memory.", [
    [{}, isolate.counter.dropped],
  ]);
  const { usd, writes, reads } = currentSpending(spending, Date.now());
  text.gauge("agarose_spending_month_usd", "What KV operations of the cache manager cost this month.", [[{}, usd]]);
  text.gauge("agarose_spending_month_operations", "KV operations of the cache manager this month.", [
    [{ operation: "write" }, writes],
    [{ operation: "read" }, reads],
  ]);
  const { usdPerMonth } = settings.spending;
  if (Number.isFinite(usdPerMonth)) {
    text.gauge("agarose_spending_month_usd_max", "What they may cost in a month.", [[{}, usdPerMonth]]);
  }
  const savings = lastPeriod?.savings;
  if (savings) {
    text.gauge("agarose_read_ms", "Expected time of a read, as the last period estimates it.", [[{}, savings.readMs]]);
    text.gauge(
      "agarose_saved_ms",
      "Estimate of how much longer a read would take without one idea of the papers.",
      Object.entries(savings.savedMs).map(([idea, ms]) => [{ idea }, ms]),
    );
    text.gauge("agarose_recovered_chunks", "Cached data chunks of regions that are down.", [[{}, savings.recovered]]);
    text.gauge(
      "agarose_region_imbalance_percent",
      "Estimate of how far the requests to the busiest region are above the mean.",
      [[{}, savings.imbalancePercent]],
    );
  }
  if (lastPeriod) {
    text.gauge("agarose_period_timestamp_ms", "When the last period ended.", [[{}, lastPeriod.at]]);
    text.gauge("agarose_period_duration_ms", "How long the last period took.", [[{}, lastPeriod.ms]]);
    text.gauge("agarose_period_operations", "Operations of the last period.", [[{}, lastPeriod.operations]]);
    text.gauge("agarose_period_errors", "Errors of the last period.", [[{}, lastPeriod.errors.length]]);
    text.gauge("agarose_period_stripes", "What the last period did, in stripes.", [
      [{ change: "written" }, lastPeriod.written],
      [{ change: "evicted" }, lastPeriod.evicted],
      [{ change: "left" }, lastPeriod.left],
      [{ change: "waiting" }, lastPeriod.waiting],
    ]);
    text.gauge(
      "agarose_period_fill_bytes",
      "What the last period fetched for the cache, and what it filled with that.",
      [
        [{ bytes: "fetched" }, lastPeriod.fetchedBytes ?? 0],
        [{ bytes: "filled" }, lastPeriod.filledBytes ?? 0],
      ],
    );
  }
  return new Response(text.toString(), { headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" } });
}

/** Returns counts whose names are joined by a space as samples with a label for each part. */
function labelled(counts: Counts, first: string, second?: string): [Labels, number][] {
  return [...counts].map(([name, count]) => {
    const at = second ? name.lastIndexOf(" ") : name.length;
    return [{ [first]: name.slice(0, at), ...(second ? { [second]: name.slice(at + 1) } : {}) }, count];
  });
}

class Exposition {
  readonly #labels: Labels;
  #text = "";

  constructor(labels: Labels) {
    this.#labels = labels;
  }

  gauge(name: string, help: string, samples: readonly [Labels, number][]): void {
    this.#add("gauge", name, help, samples);
  }

  counter(name: string, help: string, samples: readonly [Labels, number][]): void {
    this.#add("counter", name, help, samples);
  }

  toString(): string {
    return this.#text;
  }

  #add(type: "gauge" | "counter", name: string, help: string, samples: readonly [Labels, number][]): void {
    this.#text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    for (const [labels, value] of samples) {
      const pairs = Object.entries({ ...this.#labels, ...labels }).map(
        ([label, text]) => `${label}="${escapeLabel(text)}"`,
      );
      this.#text += `${name}{${pairs.join(",")}} ${value}\n`;
    }
  }
}

function escapeLabel(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
}
