/**
 * Errors as Agarose tells them over HTTP: `{"error": {"code", "message", "details"}}`.
 */

/** What a request was answered with instead of what was asked for. */
export class ToldError extends Error {
  override readonly name = "ToldError";
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** The error that the body of `response` tells, or one made of its status. */
export async function toldError(response: Response): Promise<ToldError> {
  const text = await response.text();
  try {
    const { code, message } = (JSON.parse(text) as { error: { code: string; message: string } }).error;
    return new ToldError(code, message);
  } catch {
    return new ToldError(`HTTP_${response.status}`, text.slice(0, 200) || response.statusText);
  }
}
