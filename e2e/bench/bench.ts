/** One measurement, which `main.ts` runs and which describes itself in Markdown. */
export interface Bench {
  /** As on the command line, and in the marks around its section. */
  readonly name: string;
  /** The page of its section, below docs/. Default: internals/benchmarks.md. */
  readonly page?: string;
  /** Heading of the section. */
  readonly title: string;
  /**
   * Measures and returns the section: method, table, meaning of the figures. Rejects when what was measured was not
   * what it claims.
   */
  run(options: BenchOptions): Promise<string>;
}

export interface BenchOptions {
  /** Few rounds and small files, to see that the measurement itself works. */
  readonly quick: boolean;
  readonly progress: (line: string) => void;
}
