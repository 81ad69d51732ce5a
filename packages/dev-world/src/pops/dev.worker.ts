/** The Worker of a local PoP: the real Worker on a KV namespace that fails on demand. It is never deployed. */
import { FaultyKv } from "./faulty-kv.ts";
import worker, { PopState as RealPopState, type Env } from "@agarose/worker";
import type { KvState } from "./kv-fault.ts";

export { PeerState, RequestMonitor } from "@agarose/worker";

/** The real one: its periods see the failing KV too. */
export class PopState extends RealPopState {
  constructor(state: DurableObjectState, env: Env) {
    super(state, wrap(env).env);
  }
}

const FAULT_PATH = "/__dev/fault";

let kv: FaultyKv | undefined;
let wrapped: Env | undefined;

export default {
  async fetch(request, env, context) {
    const faulty = wrap(env);
    if (new URL(request.url).pathname !== FAULT_PATH) return worker.fetch(request, faulty.env, context);
    if (request.method === "POST") {
      const { kv: fault } = (await request.json()) as { kv: KvState };
      faulty.kv.set(fault);
    }
    return Response.json({ kv: faulty.kv.fault, fired: faulty.kv.fired });
  },
  scheduled: (event, env, context) => worker.scheduled(event, wrap(env).env, context),
} satisfies ExportedHandler<Env>;

/** Returns one wrapped environment per isolate, because the Worker keys its memory by the environment's identity. */
function wrap(env: Env): { env: Env; kv: FaultyKv } {
  kv ??= new FaultyKv(env.CHUNKS);
  wrapped ??= { ...env, CHUNKS: kv.namespace };
  return { env: wrapped, kv };
}
