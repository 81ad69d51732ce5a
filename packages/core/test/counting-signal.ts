/** Counts the listeners that are added to `signal` and not removed. */
export class CountingSignal {
  listeners = 0;
  readonly signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.signal = signal;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: [string, EventListener]) => {
      this.listeners++;
      addEventListener.apply(signal, args);
    };
    signal.removeEventListener = (...args: [string, EventListener]) => {
      this.listeners--;
      removeEventListener.apply(signal, args);
    };
  }
}
