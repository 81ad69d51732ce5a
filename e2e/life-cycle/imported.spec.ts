import { importedCases } from "../cases/imported.ts";
import { runInChromium } from "../fixtures/chromium.ts";

runInChromium(importedCases);
