/** The server says when it has collected again; pages then ask anew, in place. */
import { computed, signal } from '@preact/signals';
import { now } from '../lib/clock';
import { base } from '../lib/place';
import { loadSession, needsLogin, session } from './session';

/** When the last collection ended. */
export const takenMs = signal<number | null>(null);

/** Counts collections and changes made on this page. Resources ask again when it grows. */
export const version = signal(0);

/** Since when the connection to the console is lost; null while it is up. */
export const lostSinceMs = signal<number | null>(null);

const RETRY_MS = 5000;
const QUIET_MS = 3000;
let source: EventSource | null = null;

/** How much this computer's clock is ahead of the server's, if their clocks differ by more than a delay. */
let aheadMs = Number.POSITIVE_INFINITY;
const DELAY_MAX_MS = 30_000;

function offsetMs(): number {
  return aheadMs < 0 || aheadMs > DELAY_MAX_MS ? aheadMs : 0;
}

export const ageSeconds = computed(() =>
  takenMs.value === null ? null : Math.max(0, (now.value - takenMs.value - offsetMs()) / 1000),
);

export const isStale = computed(() => {
  const limit = session.value?.age_limit_s ?? 60;
  return ageSeconds.value !== null && ageSeconds.value > limit;
});

/** Short interruptions, such as a restart behind a proxy, are not worth a word. */
export const isLost = computed(
  () => lostSinceMs.value !== null && now.value - lostSinceMs.value > QUIET_MS,
);

function took(event: MessageEvent<string>): void {
  lostSinceMs.value = null;
  const { taken_ms } = JSON.parse(event.data) as { taken_ms: number | null };
  if (taken_ms === null || taken_ms === takenMs.value) return;
  aheadMs = Math.min(aheadMs, Date.now() - taken_ms);
  takenMs.value = taken_ms;
  version.value += 1;
}

function lost(): void {
  lostSinceMs.value ??= Date.now();
  if (source?.readyState !== EventSource.CLOSED) return; // The browser reconnects by itself.
  source = null;
  setTimeout(() => void loadSession().then(() => needsLogin.value || openEvents()), RETRY_MS);
}

export function openEvents(): void {
  if (source !== null) return;
  source = new EventSource(`${base}/api/events`);
  source.addEventListener('open', () => {
    lostSinceMs.value = null;
  });
  source.addEventListener('snapshot', took);
  source.addEventListener('error', lost);
}

export function closeEvents(): void {
  source?.close();
  source = null;
}
