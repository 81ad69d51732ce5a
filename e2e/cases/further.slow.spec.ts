import { runInChromium } from "../fixtures/chromium.ts";
import { faultCases } from "./faults.ts";
import { importedCases } from "./imported.ts";
import { mediaCases } from "./media.ts";
import { readCases } from "./reads.ts";

runInChromium([...readCases, ...mediaCases, ...faultCases, ...importedCases], true);
