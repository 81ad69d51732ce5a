/**
 * The page of a report: one HTML file without scripts, which asks for nothing else and prints well.
 */
import { formatBytes, formatCount, printable } from "../../ui/output.ts";
import type { PopReport, PopSummary } from "../status/pop-report.ts";
import type { Facts } from "./gather.ts";
import { bars, escapeHtml, spans, table, type Bar } from "./plots.ts";
import { STYLE } from "./style.ts";

/** Most popular objects that the page shows of each PoP. */
const POPULAR_SHOWN = 10;

/** Returns the page. Everything in it that comes from buckets or PoPs is escaped. */
export function pageOf(facts: Facts): string {
  const { at, prefix, attention } = facts;
  const what = prefix === "" ? "All objects" : `Objects below ${escapeHtml(printable(prefix))}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Agarose report</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Agarose report</h1>
<p class="soft">${what}, ${escapeHtml(at)}. Redundancy is by what the regions list: no chunk was read.</p>
${section("Attention", attentionList(attention))}
${section("Redundancy", redundancy(facts))}
${section("Storage", storage(facts))}
${facts.pops.map((pop) => section(`PoP ${escapeHtml(pop.name)}`, popPart(pop))).join("\n")}
</body>
</html>
`;
}

function section(title: string, body: string): string {
  return `<section><h2>${title}</h2>\n${body}\n</section>`;
}

function attentionList(points: readonly string[]): string {
  if (points.length === 0) return `<p class="good">Nothing needs attention.</p>`;
  return `<ul>${points.map((point) => `<li>${escapeHtml(point)}</li>`).join("")}</ul>`;
}

function redundancy({ redundancy: counts, endangered, use }: Facts): string {
  if (use.objects === 0) return "<p>There are no objects.</p>";
  const rows = counts.map(({ beyondK, objects }): Bar => ({
    name: beyondK < 0 ? "unreadable" : String(beyondK),
    value: objects,
    text: String(objects),
    isBad: beyondK <= 0,
  }));
  const worst = endangered.map(({ key, state, beyondK, chunks, chunksSound }) => [
    printable(key),
    state,
    String(beyondK),
    `${chunksSound} of ${chunks}`,
  ]);
  return [
    "<p>How many chunks an object can lose and still be read.</p>",
    bars(["chunks beyond k", "objects"], rows),
    ...(worst.length > 0
      ? ["<h3>Nearest to loss</h3>", table(["object", "state", "chunks beyond k", "sound chunks"], worst)]
      : []),
  ].join("\n");
}

function storage({ use }: Facts): string {
  const { objects, objectBytes, storedBytes, overhead, usdPerMonth, keptBytes, orphanedBytes, regions } = use;
  const stored = [
    `${formatCount(objects, "object")} of ${formatBytes(objectBytes)} take ${formatBytes(storedBytes)}`,
    ...(overhead === undefined ? [] : [`${overhead.toFixed(2)} bytes for each`]),
    ...(usdPerMonth === undefined ? [] : [`$${usdPerMonth.toFixed(2)} a month`]),
    ...(keptBytes === 0 ? [] : [`${formatBytes(keptBytes)} kept of replaced versions`]),
    ...(orphanedBytes === 0 ? [] : [`${formatBytes(orphanedBytes)} orphaned`]),
  ].join(", ");
  const rows = regions.map(({ region, bytes, kept, orphaned, usdPerMonth: usd, problem }): Bar => {
    const dollars = usd === undefined ? "" : `, $${usd.toFixed(2)} a month`;
    const history = kept === 0 ? "" : `, ${formatBytes(kept)} kept`;
    const garbage = orphaned === 0 ? "" : `, ${formatBytes(orphaned)} orphaned`;
    const text = problem === undefined ? `${formatBytes(bytes)}${dollars}${history}${garbage}` : "did not answer";
    return { name: region, value: bytes, text, isBad: problem !== undefined };
  });
  return `<p>${escapeHtml(stored)}.</p>\n${bars(["region", "stored"], rows)}`;
}

function popPart({ url, problems, notes, state }: PopReport): string {
  const remarks = [...problems, ...notes];
  return [
    `<p class="soft">${escapeHtml(url)}</p>`,
    ...(remarks.length > 0 ? [attentionList(remarks)] : []),
    ...(state ? [stateOf(state), ideas(state), latencies(state), popular(state)] : []),
  ].join("\n");
}

function stateOf(state: PopSummary): string {
  const { policy, cachedBytes, capacityBytes, objects, stripeHitRatio, spentUsd } = state;
  const percent = (share: number): string => `${(100 * share).toFixed(0)}%`;
  return bars(
    ["cache", ""],
    [
      {
        name: "filled",
        value: cachedBytes,
        max: capacityBytes,
        text: `${formatBytes(cachedBytes)} of ${formatBytes(capacityBytes)}, ${formatCount(objects, "object")}`,
      },
      {
        name: "stripes hit",
        value: stripeHitRatio ?? 0,
        max: 1,
        text: stripeHitRatio === null ? "no reads yet" : `${percent(stripeHitRatio)}, one isolate`,
      },
      { name: "policy", text: policy },
      ...(spentUsd === null ? [] : [{ name: "spent this month", text: `$${spentUsd.toFixed(2)} for KV operations` }]),
    ],
  );
}

function ideas({ ideas: all }: PopSummary): string {
  if (all.length === 0) return "";
  const rows = all.map(({ name, atWork, reason, savedMs }): Bar => {
    if (!atWork) return { name, text: `not at work: ${reason ?? ""}` };
    if (savedMs === null) return { name, text: "at work" };
    return { name, value: Math.max(0, savedMs), text: `${savedMs.toFixed(0)} ms` };
  });
  return `<h3>What each idea saves a read, by estimate</h3>\n${bars(["idea", "saves"], rows)}`;
}

function latencies({ regions, regionsDown }: PopSummary): string {
  const rows = regions.map(({ name, p50Ms, p99Ms }) => ({
    name,
    from: p50Ms,
    to: p99Ms,
    note: regionsDown.includes(name) ? "down" : "",
  }));
  return `<h3>Time to the first byte by region, p50 to p99</h3>\n${spans(["region", "ms, on a log scale"], rows)}`;
}

function popular({ popular: keys }: PopSummary): string {
  if (keys.length === 0) return "";
  const rows = keys.slice(0, POPULAR_SHOWN).map(({ key, popularity }): Bar => ({
    name: printable(key),
    value: popularity,
    text: popularity.toFixed(1),
  }));
  return `<h3>Most popular objects</h3>\n${bars(["object", "requests per period"], rows)}`;
}
