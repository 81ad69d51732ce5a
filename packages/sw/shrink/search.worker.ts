/** The thread of one search. */
import { parentPort, workerData } from "node:worker_threads";
import { searched, type Search } from "./search.ts";

parentPort!.postMessage(searched(workerData as Search));
