/** A namespace of Durable Objects in this process: one instance by name, calls by copies, an alarm that survives. */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ObjectStorage } from "./object-storage.ts";

/** A class that extends `DurableObject`. */
export type ObjectClass = new (ctx: object, env: object) => object;

interface LocalObjectsOptions {
  /** The folder of the SQLite files; it is made where it does not exist. */
  readonly folder: string;
  readonly objectClass: ObjectClass;
  /** The environment of the objects, asked for when the first one is made. */
  readonly env: () => object;
  readonly waitUntil: (promise: Promise<unknown>) => void;
  /** Called with the error of an alarm that fails; it is retried. */
  readonly onError: (error: unknown) => void;
}

interface Instance {
  readonly object: Record<string, (...args: unknown[]) => unknown>;
  readonly storage: ObjectStorage;
  timer: NodeJS.Timeout | undefined;
  failures: number;
}

const RETRY_MS = 2_000;
const RETRY_MS_MAX = 60_000;
/** A timer of Node holds at most 2^31 - 1 ms. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** The objects of one class. */
export class LocalObjects {
  readonly #options: LocalObjectsOptions;
  readonly #instances = new Map<string, Instance>();

  /** Opens the objects that have an alarm waiting. */
  constructor(options: LocalObjectsOptions) {
    this.#options = options;
    mkdirSync(options.folder, { recursive: true });
  }

  /** Opens every object that exists, so that alarms of the last run go off. */
  wake(): void {
    const files = readdirSync(this.#options.folder).filter((name) => name.endsWith(".sqlite"));
    for (const file of files) this.#instance(decodeURIComponent(file.slice(0, -".sqlite".length)));
  }

  /** Returns the id of a name: the name itself. */
  idFromName(name: string): string {
    return name;
  }

  /** Returns a stub, whose methods take and return copies. */
  get(name: string): object {
    return new Proxy(
      {},
      {
        get: (_target, method) =>
          // A promise would call `then` of what it resolves to.
          method === "then" ? undefined : (...args: unknown[]) => this.#call(name, String(method), args),
      },
    );
  }

  /** Closes all files. Calls afterwards fail. */
  close(): void {
    for (const { storage, timer } of this.#instances.values()) {
      clearTimeout(timer);
      storage.close();
    }
    this.#instances.clear();
  }

  async #call(name: string, method: string, args: unknown[]): Promise<unknown> {
    const given = structuredClone(args);
    // A call is never part of its caller's transaction.
    await Promise.resolve();
    const { object, storage } = this.#instance(name);
    if (typeof object[method] !== "function") throw new TypeError(`${name} has no method ${method}`);
    return structuredClone(await storage.atomically(() => object[method]!(...given)));
  }

  #instance(name: string): Instance {
    const known = this.#instances.get(name);
    if (known) return known;
    const { folder, objectClass: ObjectType, env, waitUntil } = this.#options;
    const path = join(folder, `${encodeURIComponent(name)}.sqlite`);
    const storage = new ObjectStorage(path, () => this.#schedule(name));
    const ctx = { storage, waitUntil };
    const object = storage.atomically(() => new ObjectType(ctx, env())) as Instance["object"];
    this.#instances.set(name, { object, storage, timer: undefined, failures: 0 });
    this.#schedule(name);
    return this.#instances.get(name)!;
  }

  #schedule(name: string): void {
    const instance = this.#instances.get(name);
    if (!instance) return;
    clearTimeout(instance.timer);
    const at = instance.storage.getAlarm();
    if (at === null) return;
    const ms = Math.min(TIMER_MS_MAX, Math.max(0, at - Date.now()));
    instance.timer = setTimeout(() => void this.#ring(name, instance), ms).unref();
  }

  /**
   * Runs `alarm()`. An alarm that fails stays set and rings again later.
   *
   * @param unsaved when the alarm was due, where a full disk did not take it back.
   */
  async #ring(name: string, instance: Instance, unsaved: number | null = null): Promise<void> {
    const { object, storage } = instance;
    let at = unsaved;
    try {
      at = storage.getAlarm() ?? unsaved;
      if (at === null) return;
      if (at > Date.now()) return this.#schedule(name);
      const ringing = storage.atomically(() => {
        storage.setAlarm(null);
        return object["alarm"]!();
      });
      await ringing;
      instance.failures = 0;
    } catch (error) {
      this.#options.onError(error);
      if (this.#instances.get(name) !== instance) return;
      try {
        // One that failed before its first await is still set.
        if (at !== null && storage.getAlarm() === null) storage.setAlarm(at);
      } catch (full) {
        this.#options.onError(full);
      }
      const ms = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** instance.failures++);
      clearTimeout(instance.timer);
      instance.timer = setTimeout(() => void this.#ring(name, instance, at), ms).unref();
    }
  }
}
