/** A page as the cases see it, in whichever browser it is open. */
export interface AppPage {
  /** Runs `fn`, which sees nothing but `argument` and the page's own globals, and returns what it resolves with. */
  evaluate<Argument, Result>(fn: (argument: Argument) => Result | Promise<Result>, argument: Argument): Promise<Result>;
}

/** A browser that runs for several tests. Every test opens an app on an origin of its own, so none meets another's worker. */
export interface TestBrowser {
  open(url: string): Promise<AppPage & { close(): Promise<void> }>;
  close(): Promise<void>;
}

/** Why a browser cannot take part on this machine, as a sentence that says what to install. */
export class NotInstalled extends Error {}
