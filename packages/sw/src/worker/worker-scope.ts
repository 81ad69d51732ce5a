/**
 * The part of ServiceWorkerGlobalScope that is used here. Named by hand because the compiler's libraries for pages and
 * for workers exclude each other, and so that a test can be the worker.
 */
export interface WorkerScope {
  readonly location: { readonly href: string; readonly origin: string; readonly pathname: string };
  readonly registration: { readonly active: unknown };
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install", listener: (event: InstallEvent) => void): void;
  addEventListener(type: "activate", listener: (event: LifeCycleEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: WorkerFetchEvent) => void): void;
  addEventListener(type: "message", listener: (event: WorkerMessageEvent) => void): void;
}

/** An ExtendableEvent. */
export interface LifeCycleEvent {
  waitUntil(work: Promise<unknown>): void;
}

/** An InstallEvent. */
export interface InstallEvent extends LifeCycleEvent {
  /** Static routes: requests that match go to the network without starting the worker. Not in all browsers. */
  addRoutes?(routes: object): Promise<void>;
}

/** A FetchEvent. */
export interface WorkerFetchEvent extends LifeCycleEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

/** An ExtendableMessageEvent. */
export interface WorkerMessageEvent extends LifeCycleEvent {
  readonly data: unknown;
  /** Where the page waits for the answer, if it waits. */
  readonly ports: readonly { postMessage(answer: unknown): void }[];
}
