/**
 * The keys that wait for a repair: what puts and removals could not finish, and what PoPs have found regions to lack.
 */
import { keyName, parseKey } from "@agarose/core/format";
import type { RegionParts } from "../commit/write-context.ts";
import type { Config } from "../config/config.ts";
import { isInShard } from "../listing/shard.ts";
import { keyGroups } from "../listing/key-groups.ts";
import { requireMajority, type FailedRegion } from "../listing/keys.ts";
import { keysBehind } from "../pops/pop-client.ts";

/** The keys that begin with a prefix. A walk reads `entries`, then `seenByPops`, and ends with `requireComplete`. */
export class QueuedKeys {
  readonly #prefix: string;
  readonly #context: RegionParts & { readonly config: Config };
  readonly #failed: FailedRegion[] = [];

  constructor(prefix: string, context: RegionParts & { readonly config: Config }) {
    this.#prefix = prefix;
    this.#context = context;
  }

  /** The keys in the repair queue of any region. `onFailure` is called for a region that cannot be listed. */
  entries(onFailure: (failed: FailedRegion) => void): AsyncIterable<{ readonly key: string }> {
    const { stores, signal, breaker, shard } = this.#context;
    return keyGroups(stores, this.#prefix, signal, {
      kinds: ["repairs"],
      shard,
      onFailure: ({ region: { name } }, { message }) => {
        breaker.open(name);
        this.#failed.push({ region: name, problem: message });
        onFailure({ region: name, problem: message });
      },
    });
  }

  /** The keys that PoPs report, which cannot write to the queue. */
  async *seenByPops(): AsyncGenerator<{ readonly key: string }> {
    const { config, shard } = this.#context;
    const isOurs = (key: string): boolean => shard === undefined || isInShard(keyName(key), shard);
    for (const key of await keysBehind(config.pops)) {
      if (key.startsWith(this.#prefix) && isKey(key) && isOurs(key)) yield { key };
    }
  }

  /** Throws NO_QUORUM when so few regions could be listed that entries may be missing. */
  requireComplete(): void {
    requireMajority(this.#prefix, this.#failed, this.#context.stores);
  }
}

/** Whether a PoP names something that can be a key. */
function isKey(text: string): boolean {
  try {
    return parseKey(text) === text;
  } catch {
    return false;
  }
}
