/** Duties of the service worker in every browser: cases that the specs of Chromium, Firefox and WebKit run alike. */
import type { AppFile, CspReport } from "../fixtures/origin-host.ts";
import type { AppPage } from "../fixtures/app-page.ts";
import type { LocalWorld } from "@agarose/dev-world/client";

export interface Surroundings {
  readonly world: LocalWorld;
  /** Where the keys of this browser begin: a PoP may know the last browser's objects for a minute. */
  readonly folder: string;
  /** Opens the app on an origin without a service worker yet. */
  readonly openApp: () => Promise<AppPage>;
  /** Opens the app with the service worker in control. */
  readonly openControlledApp: () => Promise<AppPage>;
  /**
   * Opens the app on a host that sends these headers with the page and with the worker's script, and has these files
   * beside.
   */
  readonly openAppServedWith: (
    headers: Record<string, string>,
    files?: Readonly<Record<string, AppFile>>,
  ) => Promise<ServedApp>;
  /** Whether the browser reports what a policy refuses to a service worker; WebKit (2.50) refuses in silence. */
  readonly workersReport: boolean;
  /** Puts random bytes of the given length under a key and returns them. */
  readonly putRandom: (key: string, bytes: number) => Promise<Uint8Array>;
}

export interface ServedApp {
  readonly page: AppPage;
  /** Reports that the browser has sent to `/csp-report`; grows. */
  readonly reports: readonly CspReport[];
}

export interface BrowserCase {
  readonly name: string;
  /** Whether it is one more example of what another case shows. Chromium runs those in the slow tier. */
  readonly isFurther?: boolean;
  readonly run: (surroundings: Surroundings) => Promise<void>;
}
