/** The present, as a signal that changes each second. */
import { signal } from '@preact/signals';

export const now = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    now.value = Date.now();
  }, 1000);
}
