/** The keyboard: "/" searches, j and k walk through rows, "g" and a letter go to a page. */
import { signal } from '@preact/signals';
import { go } from './place';

export const paletteOpen = signal(false);
export const helpOpen = signal(false);

export const GOTO: Record<string, [path: string, name: string]> = {
  o: ['/', 'Overview'],
  t: ['/topics', 'Topics'],
  m: ['/messages', 'Messages'],
  g: ['/groups', 'Groups'],
  b: ['/brokers', 'Brokers'],
  h: ['/heatmap', 'Heat map'],
  p: ['/plans', 'Plans'],
  x: ['/transactions', 'Transactions'],
  s: ['/streams', 'Streams'],
  a: ['/alerts', 'Alerts'],
};

const CHORD_MS = 1000;
let chordUntil = 0;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    !(target instanceof HTMLInputElement && target.type === 'checkbox')
  );
}

/** Moves the focus to the row above or below; without a row in focus, to the first in view. */
function walk(step: 1 | -1): void {
  const current = document.activeElement?.closest('tr[data-row]');
  if (!current) {
    const rows = [...document.querySelectorAll('tr[data-row]')];
    focusRow(rows.find((row) => row.getBoundingClientRect().top >= 80) ?? rows[0]);
    return;
  }
  const next = step === 1 ? current.nextElementSibling : current.previousElementSibling;
  if (next?.matches('tr[data-row]')) focusRow(next);
}

function focusRow(row: Element | undefined): void {
  const target = row?.querySelector<HTMLElement>('a[href], button');
  if (!row || !target) return;
  target.focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}

const ACTIONS: Record<string, () => void> = {
  '/': () => {
    const field = document.querySelector<HTMLInputElement>('[data-search]');
    if (field) field.select();
    else paletteOpen.value = true;
  },
  '?': () => {
    helpOpen.value = true;
  },
  j: () => walk(1),
  k: () => walk(-1),
};

function pressed(event: KeyboardEvent): void {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    paletteOpen.value = !paletteOpen.value;
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector('dialog[open]')) return;
  const target = Date.now() < chordUntil ? GOTO[event.key] : undefined;
  chordUntil = event.key === 'g' && !target ? Date.now() + CHORD_MS : 0;
  if (target) go(target[0]);
  else if (ACTIONS[event.key]) ACTIONS[event.key]?.();
  else return;
  event.preventDefault();
}

export function listenToKeys(): void {
  document.addEventListener('keydown', pressed);
}
