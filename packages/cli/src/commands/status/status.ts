/** `agarose status`: the state of all PoPs of the configuration. Exits with 1 when something is wrong with one. */
import { AgaroseError } from "@agarose/core";
import { loadConfig } from "@agarose/storage/config/config";
import { configPath } from "../../lib/config-path.ts";
import { EXIT_FAILED, EXIT_OK, formatBytes, printResult, tableLines } from "../../ui/output.ts";
import { PopClient, type IdeaStatus } from "@agarose/storage/pops/pop-client";
import { popReport, type PopReport } from "@agarose/storage/pops/pop-report";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose status`. The command exits with 1 when a PoP does not answer or reports a problem. */
export async function status(options: Values<typeof args>): Promise<number> {
  const path = configPath(options.config);
  const { pops } = await loadConfig(path);
  if (pops.length === 0) {
    throw new AgaroseError("CONFIG_INVALID", `${path} names no PoPs: add "pops": [{ "name", "url" }]`, { path });
  }
  const reports = await Promise.all(
    pops.map((pop) => popReport(new PopClient(pop, { timeoutMs: options.timeout }), Date.now())),
  );
  printResult(options, { ok: reports.every(isWell), pops: reports }, linesOf(reports));
  return reports.every(isWell) ? EXIT_OK : EXIT_FAILED;
}

function isWell({ problems }: PopReport): boolean {
  return problems.length === 0;
}

function linesOf(reports: readonly PopReport[]): string[] {
  const header = ["PoP", "", "epoch", "policy", "cache", "objects", "hits", "period", "down"];
  const rows = reports.map(({ name, problems, warnings, state }) => [
    name,
    wordOf({ problems, warnings, state }),
    ...(state
      ? [
          String(state.epoch),
          state.policy,
          `${formatBytes(state.cachedBytes)} of ${formatBytes(state.capacityBytes)}`,
          String(state.objects),
          state.stripeHitRatio === null ? "-" : `${(100 * state.stripeHitRatio).toFixed(0)}%`,
          state.periodAgeSeconds === null ? "-" : `${state.periodAgeSeconds} s ago`,
          state.regionsDown.join(",") || "-",
        ]
      : header.slice(2).map(() => "-")),
  ]);
  const remarks = reports.flatMap(({ name, problems, warnings, notes }) =>
    [...problems, ...warnings.map((warning) => `warning: ${warning}`), ...notes.map((note) => `(${note})`)].map(
      (text) => ({ name, text }),
    ),
  );
  const alike = Map.groupBy(remarks, ({ text }) => text);
  const remarkLines = [...alike].map(([text, of]) => `${of.map(({ name }) => name).join(", ")}: ${text}`);
  return [...tableLines([header, ...rows]), ...reports.flatMap(ideaLines), ...remarkLines];
}

/** A PoP without a period is starting, unless something else is wrong with it. */
function wordOf({ problems, warnings, state }: Pick<PopReport, "problems" | "warnings" | "state">): string {
  if (state?.periodAgeSeconds === null && problems.length === 1) return "STARTING";
  return problems.length > 0 ? "WRONG" : warnings.length > 0 ? "warn" : "ok";
}

const IDEA_WORDS: Readonly<Record<string, string>> = {
  lateBinding: "late binding",
  functional: "functional chunks",
  recovered: "recovered chunks",
};

/**
 * Which ideas are at work at a PoP and what each saves; then those that are not, with the reason; and lambda. None of a
 * PoP that is starting, which has nothing to save yet.
 */
function ideaLines({ name, state }: PopReport): string[] {
  if (!state || state.periodAgeSeconds === null || state.ideas.length === 0) return [];
  const nameOf = (idea: string): string => IDEA_WORDS[idea] ?? idea;
  const saved = (idea: IdeaStatus): string => {
    if (idea.name === "recovered") return ` ${state.recoveredChunks} decodes so far`;
    const { savedMs, savedUsd } = idea;
    const egress = savedUsd ? ` and $${(1e6 * savedUsd).toFixed(2)} of egress a million reads` : "";
    return savedMs === null ? "" : ` ${savedMs.toFixed(0)} ms${egress}`;
  };
  const working = state.ideas.filter(({ atWork }) => atWork).map((idea) => `${nameOf(idea.name)}${saved(idea)}`);
  const idle = state.ideas.filter(({ atWork }) => !atWork).map((idea) => `${nameOf(idea.name)} (${idea.reason})`);
  return [
    ...(working.length > 0 ? [`${name}: saves a read, by estimate: ${working.join(", ")}`] : []),
    ...(idle.length > 0 ? [`${name}: not at work: ${idle.join(", ")}`] : []),
    ...(state.regretMs === null
      ? []
      : [
          `${name}: the best contents for the last period would have saved ${state.regretMs.toFixed(0)} ms more a read`,
        ]),
    ...(state.imbalancePercent === null
      ? []
      : [`${name}: the busiest region gets ${state.imbalancePercent.toFixed(0)}% more requests than the mean`]),
  ];
}
