/**
 * Runs before every test file. workerd closes a connection after 5 s without a request, less what it was busy before:
 * its timers count from when its event loop last looked. A request that Node sends on a kept connection just then
 * fails with "other side closed". Here every request gets its own connection.
 *
 * A request that hangs fails before its test does, so that the error says which one it was, and whether the head of its
 * answer had come. The limits count only while this process runs, so a test that times out without such an error was
 * stopped from outside together with its process, or it waits for something else than an answer.
 */
import { Agent, setGlobalDispatcher } from "undici";

const SILENT_MS = 150_000;

setGlobalDispatcher(new Agent({ pipelining: 0, headersTimeout: SILENT_MS, bodyTimeout: SILENT_MS }));
