/** Counts the listeners that `signal` has from now on. */
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
