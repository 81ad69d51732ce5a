/** What a page hears on the channel `hooks`. */
export interface HookCall {
  readonly hook: string;
  readonly path: string;
  /** Equal for hooks with one `state`. */
  readonly state: number;
  readonly status: number | undefined;
  readonly error: string | undefined;
}
