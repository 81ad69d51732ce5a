/** Every metric of `GET /metrics`. The route and docs/reference/events-and-metrics.md are made from it. */

/** A metric. */
export interface MetricDescription {
  readonly type: "gauge" | "counter" | "histogram";
  /** The counted thing; its unit is in its name. */
  readonly help: string;
  /** Its labels beside `pop`. */
  readonly labels: readonly string[];
  /** When to wake somebody, where that makes sense. */
  readonly alert?: string;
}

/**
 * By name. Metrics named `agarose_isolate_…` belong to the one isolate that answers, of many. `agarose_period_…` are
 * absent before the first period.
 */
export const METRICS = {
  agarose_configuration_epoch: gauge("Number of the configuration in force."),
  agarose_cache_capacity_bytes: gauge("Capacity of the chunk cache."),
  agarose_cache_bytes: gauge("Chunk bytes that readers are promised.", [], {
    alert: "full with a low hit ratio: `agarose lab simulate` values more cache",
  }),
  agarose_cache_objects: gauge("Objects with at least one chunk cached."),
  agarose_region_latency_seconds: gauge("Mean time to the first byte of a chunk.", ["region"]),
  agarose_region_bytes_per_second: gauge("Transfer rate after the first byte; 0 while unknown.", ["region"]),
  agarose_region_latency_quantile_seconds: gauge(
    "Time that a share of the probes and reads did not exceed: 0.5 and 0.99.",
    ["region", "quantile"],
    { alert: "0.99 is three times last week's" },
  ),
  agarose_region_slow: gauge("1 while the region is much slower than usual.", ["region"], {
    alert: "1 for 5 minutes",
  }),
  agarose_region_down: gauge("1 while the region does not answer probes.", ["region"], {
    alert: "1 for 5 minutes; page when more than the code survives",
  }),
  agarose_peer_latency_seconds: gauge("Mean round trip to a different PoP.", ["peer"]),
  agarose_peer_down: gauge(
    "1 while the PoP does not answer probes, or has sent no message for three periods.",
    ["peer"],
    { alert: "1 for 10 minutes: the PoP, its `PEERS` or its `PEER_KEY`" },
  ),
  agarose_peer_objects: gauge("Objects of which the PoP reports to hold chunks.", ["peer"]),
  agarose_isolate_stripe_reads_total: counter("Stripes looked up in the chunk cache by this isolate.", ["result"], {
    alert: "the share of hits halves in a day",
  }),
  agarose_isolate_kv_failures_total: counter("KV reads that failed or hung, in this isolate.", [], {
    alert: "above 0 for 10 minutes",
  }),
  agarose_isolate_malformed_values_total: counter("KV values that were not frames, in this isolate.", [], {
    alert: "above 0 for 10 minutes",
  }),
  agarose_isolate_requests_total: counter("Requests answered by this isolate.", ["route", "status"], {
    alert: "5xx above 0.1%",
  }),
  agarose_isolate_request_duration_seconds: {
    type: "histogram",
    help: "Time to the head of an answer of this isolate.",
    labels: ["route"],
  },
  agarose_isolate_errors_total: counter("Requests that this isolate refused, by error code.", ["code"], {
    alert: "`NOT_ENOUGH_CHUNKS` or `CHUNK_CORRUPT` above 0",
  }),
  agarose_isolate_reads_total: counter(
    "Objects decoded by this isolate, by the source of their first chunks.",
    ["kind"],
    { alert: "`degraded` above 5%" },
  ),
  agarose_isolate_bucket_requests_total: counter(
    "Chunk requests of this isolate to buckets, by result.",
    ["region", "outcome"],
    { alert: "`failed` of one region above 5%" },
  ),
  agarose_isolate_unusable_manifests_total: counter(
    "Copies of manifests that this isolate did not use: unsigned, forged, damaged or of a newer format.",
    ["region", "code"],
    { alert: "above 0: `agarose verify`, and see who may write to that bucket" },
  ),
  agarose_isolate_regions_behind_total: counter(
    "How often a region lacked a version that a majority of the regions has, as this isolate saw it.",
    ["region"],
    { alert: "rising: `agarose repair` or `agarose scrub`, which read these keys from `/v1/status`" },
  ),
  agarose_isolate_unconfirmed_lookups_total: counter(
    "Look-ups for which no majority of the regions answered, so that a version may be older than MANIFEST_TTL_SECONDS.",
  ),
  agarose_isolate_region_imbalance_ratio: gauge(
    "The share by which requests of this isolate to the busiest region exceed the mean of all (EC-Cache, 6.2).",
  ),
  agarose_isolate_peer_requests_total: counter(
    "Chunk requests of this isolate to other PoPs, by result.",
    ["peer", "outcome"],
    { alert: "`failed` of one peer above 5%" },
  ),
  agarose_isolate_recovered_chunks_total: counter(
    "Cached data chunks of regions that are down, delivered instead of a decode, by this isolate.",
  ),
  agarose_isolate_decoded_shards_total: counter("Data shards that reads of this isolate decoded."),
  agarose_isolate_stripes_decoded_total: counter("Stripes read for objects, by their own read or a different one.", [
    "by",
  ]),
  agarose_isolate_breaker_open: gauge("1 while this isolate tries the region last.", ["region"]),
  agarose_isolate_dropped_counts_total: counter("Requests not counted for lack of memory."),
  process_resident_memory_bytes: gauge("Resident memory of the PoP. Only a PoP on Node has it."),
  process_cpu_seconds_total: counter("CPU time of the PoP. Only a PoP on Node has it."),
  agarose_spending_month_usd: gauge("Cost of the cache manager's KV operations this month."),
  agarose_spending_month_operations: gauge("KV operations of the cache manager this month.", ["operation"]),
  agarose_spending_month_max_usd: gauge("Limit of this cost in a month. Absent without a limit."),
  agarose_fill_egress_day_bytes: gauge("Bytes that fills have fetched from the regions today, UTC.", [], {
    alert: "reaches its maximum: check who steers the cache before you raise FILL_EGRESS_BYTES_PER_DAY",
  }),
  agarose_fill_egress_day_max_bytes: gauge("Limit of these bytes in a day (FILL_EGRESS_BYTES_PER_DAY)."),
  agarose_read_seconds: gauge("Expected time of a read, as the last period estimates it."),
  agarose_saved_seconds: gauge("Estimated time that one idea of the papers saves a read.", ["idea"], {
    alert: "`cooperation` at 0 for an hour although peers answer",
  }),
  agarose_regret_seconds: gauge(
    "Estimated time that the reads of the last period lost compared with the best contents for just these reads.",
  ),
  agarose_read_egress_usd: gauge("Estimated egress cost of a read, and the further cost without this PoP's cache.", [
    "egress",
  ]),
  agarose_recovered_chunks: gauge("Cached data chunks of regions that are down."),
  agarose_region_imbalance_ratio: gauge(
    "Estimate of the share by which the requests to the busiest region are above the mean (EC-Cache, 6.2).",
  ),
  agarose_period_end_timestamp_seconds: gauge("When the last period ended, since 1970.", [], {
    alert: "older than 5 minutes: cron missed, or periods fail",
  }),
  agarose_period_duration_seconds: gauge("Duration of the last period."),
  agarose_period_operations: gauge("Operations of the last period."),
  agarose_period_errors: gauge("Errors of the last period. `lastPeriod.errors` of `/v1/status` names them.", [], {
    alert: "above 0 for 10 minutes",
  }),
  agarose_period_stripes: gauge(
    "Stripes that the last period wrote and evicted, that it left for the next, that wait for money, and that the egress " +
      "budget refused.",
    ["change"],
    { alert: "`left` grows for an hour: budget or capacity is too small" },
  ),
  agarose_period_fill_bytes: gauge(
    "Bytes that the last period fetched for the cache, and bytes that it filled. Fills reuse chunks that reads have just fetched.",
    ["bytes"],
  ),
} as const satisfies Readonly<Record<string, MetricDescription>>;

/** Name of a metric. */
export type MetricName = keyof typeof METRICS;

type Described<T extends MetricDescription["type"], L extends string> = MetricDescription & {
  readonly type: T;
  readonly labels: readonly L[];
};

function gauge<L extends string = never>(
  help: string,
  labels: readonly L[] = [],
  more: Pick<MetricDescription, "alert"> = {},
): Described<"gauge", L> {
  return { type: "gauge", help, labels, ...more };
}

function counter<L extends string = never>(
  help: string,
  labels: readonly L[] = [],
  more: Pick<MetricDescription, "alert"> = {},
): Described<"counter", L> {
  return { type: "counter", help, labels, ...more };
}
