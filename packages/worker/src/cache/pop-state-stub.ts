/** How the Worker reaches the one object that holds a PoP's state. */
import { durableObject, type PlaceBinding } from "../runtime/durable-objects.ts";
import type { PopState } from "./pop-state.ts";

/** The binding of `PopState` (wrangler.toml). */
export interface PopStateBinding extends PlaceBinding {
  /** One object per PoP: region estimates, and what the cache manager has written. */
  readonly POP_STATE: DurableObjectNamespace<PopState>;
}

const NAME = "pop";

/** Returns the stub. A stub belongs to the invocation that asked for it. */
export function popState(env: PopStateBinding): DurableObjectStub<PopState> {
  return durableObject(env.POP_STATE, NAME, env);
}
