/**
 * `agarose-sw.remove.js`: replaces a drop-in file that is in use, and ends it. It deletes what Agarose has
 * stored and unregisters itself. A worker that imports it gets a function `agarose` without effect.
 */
import { removeWorker, type RemovedScope } from "../worker/remove-worker.ts";

removeWorker(globalThis as unknown as RemovedScope);
