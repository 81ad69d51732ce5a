/**
 * A Worker that heals without anybody looking. On schedule, a Workflow cuts the keys into ranges, and starts another
 * one for each, several at a time. Those walk over their ranges part by part, and repair what is damaged.
 */
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";
import { parseConfig } from "@agarose/storage/config/config";
import { app } from "./routes.ts";
import { cutWalk } from "./cut.ts";
import { Ledger, type Child, type Ended, type OpenWalk } from "./ledger.ts";
import { parseOptions, type ScrubberOptions } from "./options.ts";
import { scopeOf, scrubPart } from "./part.ts";
import { claim, ledgerOf, stateOf, type ScrubberEnv } from "./walks.ts";

export type { ScrubberOptions } from "./options.ts";
export type { ScrubberEnv } from "./walks.ts";

/** The exports of the Worker's module. */
export interface Scrubber {
  /** The default export. */
  readonly worker: { fetch(request: Request, env: ScrubberEnv): Response | Promise<Response> };
  /** The class that `workflows` of Wrangler's configuration names. */
  readonly ScrubWalk: new (context: never, env: ScrubberEnv) => object;
  /** The class that `durable_objects` names. */
  readonly ScrubState: typeof Ledger;
}

/**
 * A part that fails restarts where the last one ended, because the objects repaired so far are sound by then. It may
 * take long when full reads are slowed down, and every request has its own deadline.
 */
const RETRIES = { retries: { limit: 5, delay: "1 minute", backoff: "exponential" }, timeout: "1 day" } as const;
/** Between two looks at the children. */
const [WAIT_MS_MIN, WAIT_MS_MAX] = [1_000, 60_000];
/** A look is late by no more than this share of the time that the parent has run. */
const WAIT_SHARE = 0.1;

/**
 * Makes the Worker.
 *
 * @param config what `agarose.config.json` holds.
 * @throws CONFIG_INVALID for a configuration that a Worker cannot use, USAGE for an option that cannot be read.
 */
export function createScrubber(config: object, options: ScrubberOptions = {}): Scrubber {
  const parsed = parseConfig(JSON.stringify(config), "the configuration");
  const settings = parseOptions(options, parsed);
  const { stepsMax, concurrency, requests: max, deep } = settings;
  const limits = { concurrency, requests: max, usd: deep.usd };

  class ScrubWalk extends WorkflowEntrypoint<ScrubberEnv> {
    override run(event: WorkflowEvent<Partial<Child> | undefined>, step: WorkflowStep): Promise<void> {
      const { id, index } = event.payload ?? {};
      return id === undefined || index === undefined ? this.#lead(event, step) : this.#walk({ id, index }, step);
    }

    /** The parent: it never looks at an object. */
    async #lead({ instanceId: id, timestamp }: WorkflowEvent<unknown>, step: WorkflowStep): Promise<void> {
      const ledger = ledgerOf(this.env);
      const startMs = timestamp.getTime();
      const open = await step.do("begin", () => this.#begin(id, startMs));
      if (!open) return;
      if (open.ranges === 0) {
        await step.do("cut", RETRIES, async () => {
          const { cuts, urgent, behind } = await cutWalk(parsed, settings);
          await ledger.cut(id, cuts, urgent, behind);
        });
      }
      // The first two steps and the last are of the same limit.
      for (let round = 1; round <= stepsMax - 3; round++) {
        const { isOver, waitMs } = await step.do(`round ${round}`, RETRIES, () => this.#round(id, startMs));
        if (isOver) return;
        await step.sleep(`after round ${round}`, waitMs);
      }
    }

    async #begin(id: string, startMs: number): Promise<OpenWalk | undefined> {
      const parent = await claim(this.env, id);
      if (parent !== id) console.warn(`walk ${parent} is under way: ${id} ends`);
      const open = parent === id ? await ledgerOf(this.env).begin(id, scopeOf(parsed, settings), startMs) : undefined;
      const ageMs = startMs - (open?.startMs ?? startMs);
      if (ageMs > settings.everyMs) {
        const late = { event: "walk-late", startMs: open?.startMs, ageMs, everyMs: settings.everyMs };
        console.error(JSON.stringify(late));
      }
      return open;
    }

    async #round(id: string, startMs: number): Promise<{ readonly isOver: boolean; readonly waitMs: number }> {
      const ledger = ledgerOf(this.env);
      const running = await ledger.running(id);
      const lost = (await Promise.all(running.map((child) => this.#lost(child)))).flat();
      const { start, isOver, ended } = await ledger.round(id, lost, limits, Date.now());
      await Promise.all(start.map((child) => this.#start(child)));
      if (isOver && !ended) {
        const { failed = [], requests } = (await ledger.progress()) ?? {};
        console.error(JSON.stringify({ event: "walk-open", failed, requests, requestsMax: max }));
      }
      const waitMs = Math.min(WAIT_MS_MAX, Math.max(WAIT_MS_MIN, (Date.now() - startMs) * WAIT_SHARE));
      return { isOver, waitMs };
    }

    /** Starts a child that was never started, and reports one that ended without a report. */
    async #lost(child: Child): Promise<Ended[]> {
      const state = await stateOf(this.env, child.id);
      if (!state) await this.#start(child);
      if (!state || state.isActive) return [];
      const { status, error } = state;
      console.error(JSON.stringify({ event: "range-failed", ...child, status, error }));
      return [{ ...child, error: `its Workflow is ${status}: ${JSON.stringify(error ?? null)}` }];
    }

    /** One that cannot be made now, or is there already, is looked at in the next round. */
    async #start(child: Child): Promise<void> {
      const failed = (error: unknown): void => console.warn(`${child.id} is not started: ${String(error)}`);
      await this.env.SCRUB.create({ id: child.id, params: child }).catch(failed);
    }

    async #walk(child: Child, step: WorkflowStep): Promise<void> {
      const ledger = ledgerOf(this.env);
      try {
        // The last step is the report.
        for (let part = 1; part < stepsMax; part++) {
          const goesOn = await step.do(`part ${part}`, RETRIES, async () => {
            const task = await ledger.take(child);
            if (!task) return false;
            const { position, requests: spent } = await scrubPart(parsed, settings, task);
            return ledger.pass(child, task.position, position, { spent, max });
          });
          if (!goesOn) return;
        }
        await step.do("report", () => ledger.release(child));
      } catch (error) {
        await step.do("report", () => ledger.release({ ...child, error: String(error) }));
        throw error;
      }
    }
  }

  return { ScrubWalk, ScrubState: Ledger, worker: { fetch: (request, env) => app.fetch(request, env) } };
}
