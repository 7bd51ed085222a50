/** Answers of the API that stay on the page while they are asked for again. */
import { type Signal, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Problem, get, problemText } from './client';
import { version } from './events';
import { goToLogin, loadSession, needsLogin } from './session';

interface State<T> {
  data: T | undefined;
  problem: Problem | undefined;
  /** It has taken so long that a skeleton should show. */
  slow: boolean;
}

interface Entry {
  state: Signal<State<unknown>>;
  /** The version that the data was asked for at. */
  at: number | undefined;
  running: Promise<void> | null;
}

export type Loaded<T> = State<T> & { again: () => void };

const SLOW_MS = 150;
const ENTRIES_MAX = 300;
const entries = new Map<string, Entry>();
const EMPTY: State<never> = { data: undefined, problem: undefined, slow: false };

function entryOf(path: string): Entry {
  const found = entries.get(path);
  if (found) {
    entries.delete(path);
    entries.set(path, found); // The latest used is the last to be dropped.
    return found;
  }
  const made: Entry = { state: signal<State<unknown>>(EMPTY), at: undefined, running: null };
  entries.set(path, made);
  const oldest = entries.keys().next().value;
  if (entries.size > ENTRIES_MAX && oldest !== undefined) entries.delete(oldest);
  return made;
}

async function load(path: string, entry: Entry): Promise<void> {
  const at = version.peek();
  const timer = setTimeout(() => {
    if (entry.state.value.data === undefined) entry.state.value = { ...EMPTY, slow: true };
  }, SLOW_MS);
  try {
    const data = await get<unknown>(path);
    entry.state.value = { data, problem: undefined, slow: false };
  } catch (error) {
    const problem =
      error instanceof Problem ? error : new Problem(problemText(error), 0, 'unreachable');
    entry.state.value = { data: entry.state.value.data, problem, slow: false };
    if (problem.status === 401) {
      await loadSession();
      if (needsLogin.value) goToLogin();
    }
  } finally {
    clearTimeout(timer);
    entry.at = at;
    entry.running = null;
  }
}

/** Asks for the path unless it is being asked for. */
function refresh(path: string): void {
  const entry = entryOf(path);
  entry.running ??= load(path, entry);
}

/** What is on the page is asked for again, because this page has changed something. */
export function refreshAll(): void {
  for (const entry of entries.values()) entry.at = undefined;
  version.value += 1;
}

/**
 * The answer to a GET. It is asked for again after each collection (`live`). While another path loads,
 * `keep` shows the last data.
 */
export function useResource<T>(
  path: string | null,
  options: { live?: boolean; keep?: boolean } = {},
): Loaded<T> {
  const { live = true, keep = false } = options;
  const tick = version.value;
  const last = useRef<T | undefined>(undefined);
  const state = path === null ? EMPTY : (entryOf(path).state.value as State<T>);
  useEffect(() => {
    if (path === null) return;
    const entry = entryOf(path);
    if (entry.at === undefined || (live && entry.at !== version.peek())) refresh(path);
  }, [path, tick, live]);
  if (state.data !== undefined) last.current = state.data;
  const data = state.data ?? (keep ? last.current : undefined);
  return { ...state, data, again: () => path !== null && refresh(path) };
}

/** Pieces of a list by their first row, for windows over long lists. */
export function usePieces<T>(paths: string[]): (Loaded<T> & { path: string })[] {
  const tick = version.value;
  const key = paths.join('\n');
  useEffect(() => {
    for (const path of paths) {
      if (entryOf(path).at !== version.peek()) refresh(path);
    }
  }, [key, tick]);
  return paths.map((path) => {
    const state = entryOf(path).state.value as State<T>;
    return { ...state, path, again: () => refresh(path) };
  });
}
