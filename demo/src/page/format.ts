/** Formats numbers for people. */

export function ms(value: number): string {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${Math.round(value)} ms`;
}

/** The rate of so many bytes in so many milliseconds; slow ones keep a digit, so that none reads as nothing. */
export function bitRate(length: number, durationMs: number): string {
  const rate = (8 * length) / 1000 / durationMs;
  return `${rate.toFixed(rate < 10 ? 1 : 0)} Mbit/s`;
}

export function bytes(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(value >= 1e7 ? 1 : 2)} MB`;
  if (value >= 1e3) return `${Math.round(value / 1e3)} kB`;
  return `${value} B`;
}

export function percent(fraction: number): string {
  return `${Math.round(100 * fraction)}%`;
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}
