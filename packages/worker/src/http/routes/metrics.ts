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

/** A value, its labels beside `pop`, and what its name has behind that of the metric. */
type Sample<L extends string> = readonly [Readonly<Record<L, string>>, number, suffix?: string];

/** The value of each metric that has no labels, or its samples. Undefined ones are omitted. */
type Figures = {
  readonly [Name in MetricName]?:
    | ([(typeof METRICS)[Name]["labels"][number]] extends [never] ? number : never)
    | readonly Sample<(typeof METRICS)[Name]["labels"][number]>[]
    | undefined;
};

/** Answers with every metric of the PoP and of the isolate that answers. */
export async function metrics(c: Context<AppEnv>): Promise<Response> {
  const isolate = isolateOf(c.env);
  const settings = settingsOf(c.env);
  const { epoch, ledger, regions, lastPeriod, spending, fillEgress } = await popState(c.env).snapshot();
  const { hits, misses, malformed, kvFailures } = isolate.cache.counters;
  const { peers } = settings.peers ? await peerState(c.env).status() : { peers: [] };
  const { traffic } = isolate;
  const { led, followed } = isolate.coalescing.counters;
  const regionNames = settings.regions.map(({ name }) => name);
  const used = c.env.PROCESS?.usage();
  const { usd, writes, reads } = currentSpending(spending, Date.now());
  const { usdPerMonth } = settings.spending;
  const savings = lastPeriod?.savings;
  const perRegion = (value: (region: (typeof regions)[number]) => number): Sample<"region">[] =>
    regions.map((region) => [{ region: region.name }, value(region)]);
  const perPeer = (value: (peer: (typeof peers)[number]) => number): Sample<"peer">[] =>
    peers.map((peer) => [{ peer: peer.name }, value(peer)]);
  const text = exposition(settings.pop, {
    agarose_configuration_epoch: epoch,
    agarose_cache_capacity_bytes: settings.cacheBytes,
    agarose_cache_bytes: ledger.reduce((sum, entry) => sum + entry.chunks.length * entry.chunkBytes, 0),
    agarose_cache_objects: ledger.filter(({ chunks }) => chunks.length > 0).length,
    agarose_region_latency_seconds: perRegion(({ meanMs }) => meanMs / 1000),
    agarose_region_bytes_per_second: perRegion(({ msPerByte }) => (msPerByte > 0 ? 1000 / msPerByte : 0)),
    agarose_region_latency_quantile_seconds: [0.5, 0.99].flatMap((q) =>
      regions.map(({ name, times }): Sample<"region" | "quantile"> => [
        { region: name, quantile: String(q) },
        (quantileMs(times, q) ?? 0) / 1000,
      ]),
    ),
    agarose_region_slow: perRegion(({ slow }) => Number(slow)),
    agarose_region_down: perRegion(({ down }) => Number(down)),
    agarose_peer_latency_seconds: perPeer(({ meanMs }) => meanMs / 1000),
    agarose_peer_down: perPeer(({ down, silent }) => Number(down || silent)),
    agarose_peer_objects: perPeer(({ objects }) => objects),
    agarose_isolate_stripe_reads_total: by("result", { hit: hits, miss: misses }),
    agarose_isolate_kv_failures_total: kvFailures,
    agarose_isolate_malformed_values_total: malformed,
    agarose_isolate_requests_total: labelled(traffic.requests, "route", "status"),
    agarose_isolate_request_duration_seconds: histograms("route", traffic.durations),
    agarose_isolate_errors_total: labelled(traffic.errors, "code"),
    agarose_isolate_reads_total: labelled(traffic.reads, "kind"),
    agarose_isolate_bucket_requests_total: labelled(traffic.bucketRequests, "region", "outcome"),
    agarose_isolate_unusable_manifests_total: labelled(traffic.unusableManifests, "region", "code"),
    agarose_isolate_regions_behind_total: labelled(traffic.regionsBehind, "region"),
    agarose_isolate_unconfirmed_lookups_total: traffic.unconfirmed,
    agarose_isolate_region_imbalance_ratio: traffic.regionImbalancePercent(regionNames) / 100,
    agarose_isolate_peer_requests_total: labelled(traffic.peerRequests, "peer", "outcome"),
    agarose_isolate_recovered_chunks_total: traffic.recoveredChunks,
    agarose_isolate_decoded_shards_total: traffic.decodedShards,
    agarose_isolate_stripes_decoded_total: by("by", { own: led, other: followed }),
    agarose_isolate_breaker_open: regionNames.map((name) => [{ region: name }, Number(isolate.breakers.isOpen(name))]),
    agarose_isolate_dropped_counts_total: isolate.counter.dropped,
    process_resident_memory_bytes: used?.residentBytes,
    process_cpu_seconds_total: used?.cpuSeconds,
    agarose_spending_month_usd: usd,
    agarose_spending_month_operations: by("operation", { write: writes, read: reads }),
    agarose_spending_month_max_usd: Number.isFinite(usdPerMonth) ? usdPerMonth : undefined,
    agarose_fill_egress_day_bytes: currentEgress(fillEgress, Date.now()).bytes,
    agarose_fill_egress_day_max_bytes: settings.fillEgressBytesPerDay,
    ...(savings && {
      agarose_read_seconds: savings.readMs / 1000,
      agarose_saved_seconds: by("idea", savings.savedMs, 1000),
      agarose_regret_seconds: savings.regretMs === undefined ? undefined : savings.regretMs / 1000,
      agarose_read_egress_usd: by("egress", savings.egressUsd),
      agarose_recovered_chunks: savings.recovered,
      agarose_region_imbalance_ratio: savings.imbalancePercent / 100,
    }),
    ...(lastPeriod && {
      agarose_period_end_timestamp_seconds: lastPeriod.at / 1000,
      agarose_period_duration_seconds: lastPeriod.ms / 1000,
      agarose_period_operations: lastPeriod.operations,
      agarose_period_errors: lastPeriod.errors.length,
      agarose_period_stripes: by("change", {
        written: lastPeriod.written,
        evicted: lastPeriod.evicted,
        left: lastPeriod.left,
        waiting: lastPeriod.waiting,
        refused: lastPeriod.refused ?? 0,
      }),
      agarose_period_fill_bytes: by("bytes", {
        fetched: lastPeriod.fetchedBytes ?? 0,
        filled: lastPeriod.filledBytes ?? 0,
      }),
    }),
  });
  return new Response(text, { headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" } });
}

/** Returns counts whose names are joined by a space as samples with a label for each part. */
function labelled<L extends string>(counts: Counts, first: L, second?: L): Sample<L>[] {
  return [...counts].map(([name, count]) => {
    const at = second ? name.lastIndexOf(" ") : name.length;
    const labels = { [first]: name.slice(0, at), ...(second ? { [second]: name.slice(at + 1) } : {}) };
    return [labels as Record<L, string>, count];
  });
}

/** Returns a sample for each value of one label, with what is counted in parts of `unit`. */
function by<L extends string>(label: L, values: Readonly<Record<string, number>>, unit = 1): Sample<L>[] {
  return Object.entries(values).map(([value, count]) => [{ [label]: value } as Record<L, string>, count / unit]);
}

/** Returns the samples of a histogram for each value of its label. */
function histograms<L extends string>(label: L, all: ReadonlyMap<string, Durations>): Sample<L>[] {
  return [...all].flatMap(([value, { seconds, count, atMost }]) => {
    const labels = { [label]: value } as Record<L, string>;
    const buckets = [...SECONDS_CLASSES.map((end, i) => [String(end), atMost[i]!] as const), ["+Inf", count] as const];
    return [
      ...buckets.map(([le, number]): Sample<L> => [{ ...labels, le }, number, "_bucket"]),
      [labels, seconds, "_sum"] as const,
      [labels, count, "_count"] as const,
    ];
  });
}

/** The text of metrics of the catalogue, each with a sample for each set of its labels. */
function exposition(pop: string, figures: Figures): string {
  let text = "";
  for (const [name, figure] of Object.entries<number | readonly Sample<string>[] | undefined>(figures)) {
    if (figure === undefined) continue;
    const { help, type } = METRICS[name as MetricName];
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    for (const [labels, value, suffix = ""] of typeof figure === "number" ? [[{}, figure] as const] : figure) {
      const pairs = Object.entries({ pop, ...labels }).map(([label, shown]) => `${label}="${escapeLabel(shown)}"`);
      text += `${name}${suffix}{${pairs.join(",")}} ${value}\n`;
    }
  }
  return text;
}

function escapeLabel(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
}
