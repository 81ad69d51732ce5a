/** The gateway: the S3 server over a deployment, which it opens again when its configuration turns out to be old. */
import { startS3Server, Uploads, type S3Server, type S3ServerOptions } from "@agarose/s3-server";
import { AgaroseError, systemClock } from "@agarose/core";
import type { Consistency } from "../objects/manifests.ts";
import { withNewBreaker } from "../commit/write-context.ts";
import { UnreadAdoptions } from "../origin/read-through.ts";
import type { DeploymentParts } from "../parts.ts";
import { KnownRegions } from "../regions/known-regions.ts";
import { repairOne, type RepairOutcome } from "../repair/repair-outcome.ts";
import { DeploymentBackend, type DeploymentContext } from "./deployment-backend.ts";
import { RepairTurns } from "./repair-turns.ts";
import { Spool } from "./spool.ts";
import { FolderJournal, takeFolder, type UploadFolder } from "./upload-journal.ts";

/** How a gateway is set up. */
export interface GatewayOptions extends Pick<S3ServerOptions, "pairs" | "domain"> {
  /** 0 for any free port. */
  readonly port: number;
  readonly host: string;
  /** The context of reads and writes. Its signal does not stop a gateway: `close` does. */
  readonly context: DeploymentParts;
  /** Of reads and lists. Default: `strong`. */
  readonly consistency?: Consistency | undefined;
  /**
   * Hears of each key that is repaired in the background, because a put or removal of this gateway could not reach a
   * region. Default: such keys are left to `agarose repair`.
   */
  readonly onRepaired?: ((repaired: RepairOutcome) => void) | undefined;
  /** Reads the configuration again, for a gateway that was started before a rotation. Default: it answers 503. */
  readonly reload?: () => Promise<DeploymentParts>;
  /** The most bytes of bodies that wait on disk. */
  readonly spoolBytes: number;
  /** The folder of multipart uploads, for the next gateway to have them. Default: this one forgets them. */
  readonly uploads?: UploadFolder | undefined;
  /** Milliseconds since 1970. Default: that of `context`. */
  readonly nowMs?: () => number;
}

/** A running gateway. */
export interface Gateway {
  /** `http://host:port`, without a trailing slash. */
  readonly url: string;
  /** Takes no more requests, waits for those under way, aborts those that take longer than `graceMs`, and resolves. */
  close(graceMs: number): Promise<void>;
}

/** Starts a gateway. Resolves when it listens. Throws USAGE without the port, or what `takeFolder` throws. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { spoolBytes, nowMs = options.context.nowMs, consistency = "strong", onRepaired } = options;
  const ending = new AbortController();
  const unread = new UnreadAdoptions();
  const contextOf = (own: DeploymentParts): DeploymentContext => {
    const shown = { ...own, signal: ending.signal, nowMs };
    const queuing = onRepaired && { onQueued: (key: string) => turns.add(key) };
    return { ...shown, ...queuing, consistency, unread, knownRegions: new KnownRegions(shown, true) };
  };
  let current = contextOf(options.context);
  const turns = new RepairTurns(current.clock, async (key, signal) => {
    const repair = await repairOne(key, withNewBreaker({ ...current, signal }), { quick: true });
    if (repair.outcome === "failed") await recover(repair.error);
    if (repair.outcome === "repaired") onRepaired?.(repair);
    return repair.outcome === "repaired" || repair.outcome === "sound";
  });
  const { uploads: folder } = options;
  const giveBack = folder ? await takeFolder(folder) : () => {};
  const spool = await Spool.open(spoolBytes, folder?.dir);
  const journal = folder && new FolderJournal(folder.dir, spool, nowMs);
  const uploads = await Uploads.open({ discard: (body) => spool.remove(body), nowMs, journal });
  spool.whenFull(() => uploads.removeIdle());
  const recover = reloadBy(async () => {
    if (!options.reload) return;
    current = contextOf(await options.reload());
    backend.use(current);
  }, nowMs);
  const backend = new DeploymentBackend(current, { uploads, spool, recover });
  let server: S3Server;
  try {
    server = await listen({ ...options, backend, name: "agarose-gateway", cors: ["*"] });
  } catch (error) {
    await spool.close();
    giveBack();
    throw error;
  }
  return {
    url: server.url,
    async close(graceMs) {
      // Once their connections are cut, no client hears of requests that continue.
      const cancel = systemClock.after(graceMs, () => {
        ending.abort(new AgaroseError("ABORTED", "the gateway is shutting down: retry"));
      });
      await Promise.all([server.close(graceMs), unread.close(), turns.close()]);
      cancel();
      await spool.close();
      giveBack();
    },
  };
}

async function listen(options: S3ServerOptions & Pick<GatewayOptions, "port" | "host">): Promise<S3Server> {
  const { host, port } = options;
  try {
    return await startS3Server(options);
  } catch (error) {
    const message = `the gateway cannot listen on ${host}:${port} (${(error as Error).message}): choose another port or address`;
    throw new AgaroseError("USAGE", message, { host, port }, error);
  }
}

/** Errors of a gateway that was started before a rotation. */
const OUTDATED: ReadonlySet<string> = new Set([
  "KEYS_OUTDATED",
  "MANIFEST_UNTRUSTED",
  "SECRET_MISSING",
  "SECRET_WRONG",
]);
/** A client that a new configuration cannot help must not cause a read of it for every request. */
const RELOAD_MS_MIN = 1_000;

/**
 * Returns what reads the configuration again by `run` when an error shows that it is from before. It resolves when the
 * next request has a configuration that fits, if there is one, and does not reject.
 */
function reloadBy(run: () => Promise<void>, nowMs: () => number): (cause: unknown) => Promise<void> {
  let startedMs = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | undefined;
  return async (cause) => {
    if (!(cause instanceof AgaroseError) || !OUTDATED.has(cause.code)) return;
    if (!running && Math.abs(nowMs() - startedMs) < RELOAD_MS_MIN) return;
    startedMs = nowMs();
    // A file that is being written is reread by the next request.
    running ??= run()
      .catch(() => {})
      .finally(() => (running = undefined));
    await running;
  };
}
