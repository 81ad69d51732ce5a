import { onRead, summarized } from "@agarose/sw/devtools";

const COLLECTOR = "https://otel.example.com/v1/traces";
const reads = new Map();

onRead((event) => {
  const summary = summarized(reads.get(event.read), event);
  if (!summary) return; // the listener missed its beginning
  reads.set(event.read, summary);
  if (!summary.end) return;
  reads.delete(event.read);
  const headers = { "content-type": "application/json" };
  void fetch(COLLECTOR, { method: "POST", headers, body: JSON.stringify(traceOf(summary)), keepalive: true });
});

function traceOf(summary) {
  const { start, plan, requests, end } = summary;
  const traceId = start.read.replaceAll("-", "");
  const root = traceId.slice(0, 16);
  const nanos = (ms) => `${Math.round((start.at + ms) * 1000)}000`;
  const span = (name, startMs, endMs, facts, error) => ({
    traceId,
    spanId: crypto.randomUUID().replaceAll("-", "").slice(16),
    parentSpanId: root,
    name,
    kind: 3, // CLIENT
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(endMs),
    attributes: Object.entries({ ...facts, ...(error && { "error.type": error }) }).map(([key, value]) => ({
      key,
      value: typeof value === "number" ? { intValue: value } : { stringValue: String(value) },
    })),
    ...(error && { status: { code: 2, message: error } }),
  });
  const { key, method } = start;
  const facts = {
    "agarose.key": key,
    "agarose.read.kind": end.kind,
    "http.request.method": method,
    "http.response.status_code": end.status,
  };
  const read = { ...span(`${method} object`, 0, end.ms, facts, end.error), spanId: root, parentSpanId: "", kind: 1 };
  const spans = requests
    .filter(({ endMs }) => endMs !== undefined)
    .map(({ stripe, chunk, source, kind, outcome, startMs, endMs, error }) => {
      const chunkFacts = { "agarose.stripe": stripe, "agarose.chunk": chunk, "agarose.outcome": outcome };
      return span(`chunk from ${kind} ${source}`, startMs, endMs, chunkFacts, error);
    });
  if (plan) {
    const { from, pop, version, ms } = plan;
    const planFacts = { "agarose.plan.from": from, "agarose.pop": pop, "agarose.version": version };
    spans.unshift(span("plan", 0, ms, planFacts, undefined));
  }
  const resource = { attributes: [{ key: "service.name", value: { stringValue: "my-app" } }] };
  return { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: "agarose" }, spans: [read, ...spans] }] }] };
}
