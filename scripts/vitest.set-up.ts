/**
 * Runs before every test file. workerd closes a connection after 5 s without a request, less what it was busy before:
 * its timers count from when its event loop last looked. A request that Node sends on a kept connection just then
 * fails with "other side closed". Here every request gets its own connection.
 */
import { Agent, setGlobalDispatcher } from "undici";

setGlobalDispatcher(new Agent({ pipelining: 0 }));
