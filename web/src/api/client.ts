/** Calls the console's HTTP API. An answer other than 2xx becomes a Problem that says what to do. */
import { base } from '../lib/place';
import { session } from './session';

export class Problem extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
  ) {
    super(message);
  }
}

const UNREACHABLE = 'The console does not answer. Check that `barnabas console` runs, then try again.';

async function problemOf(response: Response): Promise<Problem> {
  try {
    const body = (await response.json()) as { error?: unknown; code?: unknown };
    if (typeof body.error === 'string') {
      return new Problem(body.error, response.status, String(body.code ?? ''));
    }
  } catch {
    // Not JSON: a proxy answered.
  }
  return new Problem(`The console answered with status ${response.status}.`, response.status, '');
}

async function send(path: string, init: RequestInit): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(`${base}/api${path}`, { credentials: 'same-origin', ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Problem(UNREACHABLE, 0, 'unreachable');
  }
  if (!response.ok) throw await problemOf(response);
  if (response.status === 204) return null;
  const text = await response.text();
  return text === '' ? null : JSON.parse(text);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await send(path, signal ? { signal } : {})) as T;
}

/** Sends a change. The session's CSRF token goes with it. */
export async function change<T>(method: 'POST' | 'DELETE', path: string, body: unknown): Promise<T> {
  const headers = {
    'Content-Type': 'application/json',
    'X-CSRF-Token': session.value?.csrf ?? '',
  };
  return (await send(path, { method, headers, body: JSON.stringify(body) })) as T;
}

export const post = <T>(path: string, body: unknown): Promise<T> => change<T>('POST', path, body);

export function problemText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
