/** The part of workerd's `nodejs_als` that the tests use. */
declare module "node:async_hooks" {
  export class AsyncLocalStorage<T> {
    run<R>(store: T, task: () => R): R;
    getStore(): T | undefined;
  }
}
