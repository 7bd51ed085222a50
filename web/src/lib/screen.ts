/** The width of the screen, in three steps. */
import { signal } from '@preact/signals';

function matches(condition: string) {
  const media = window.matchMedia(condition);
  const state = signal(media.matches);
  media.addEventListener('change', (event) => {
    state.value = event.matches;
  });
  return state;
}

export const isPhone = matches('(max-width: 640px)');
export const isNarrow = matches('(max-width: 959px)');
