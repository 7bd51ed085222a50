/** The command palette: pages, actions, topics, groups and brokers by a few letters. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { get } from '../api/client';
import { session } from '../api/session';
import type { Found } from '../api/types';
import { GOTO, paletteOpen } from '../lib/keys';
import { go, queryOf } from '../lib/place';
import { setTheme } from '../lib/theme';
import { Name } from './text';

interface Item {
  kind: string;
  name: string;
  act: () => void;
}

const ASK_MS = 80;

function pageItems(): Item[] {
  const pages: Item[] = Object.values(GOTO).map(([to, name]) => ({
    kind: 'page',
    name,
    act: () => go(to),
  }));
  if (session.value?.features.telemetry) {
    pages.push({ kind: 'page', name: 'Telemetry', act: () => go('/telemetry') });
  }
  const actions: Item[] = [
    { kind: 'action', name: 'Create a topic', act: () => go('/topics?create=1') },
    { kind: 'action', name: 'Produce a message', act: () => go('/messages?produce=1') },
    { kind: 'action', name: 'Plan a balanced placement', act: () => go('/plans?kind=balance') },
    { kind: 'action', name: 'Theme: light', act: () => setTheme('light') },
    { kind: 'action', name: 'Theme: dark', act: () => setTheme('dark') },
    { kind: 'action', name: 'Theme: as the system', act: () => setTheme('system') },
  ];
  return [...pages, ...actions];
}

function matching(items: Item[], text: string): Item[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return items.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
}

/** Addresses from the server may only lead into the console. */
function itemOf({ kind, name, url }: Found): Item {
  return { kind, name, act: () => url.startsWith('/') && !url.startsWith('//') && go(url) };
}

function useFound(text: string): Item[] {
  const [found, setFound] = useState<Item[]>([]);
  useEffect(() => {
    if (text.trim() === '') return setFound([]);
    const stop = new AbortController();
    const timer = setTimeout(() => {
      get<{ items: Found[] }>(`/search${queryOf({ q: text })}`, stop.signal)
        .then(({ items }) => setFound(items.filter(({ kind }) => kind !== 'page' && kind !== 'action').map(itemOf)))
        .catch(() => undefined); // The pages are still there to choose from.
    }, ASK_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  return found;
}

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const found = useFound(text);
  // What was found for an earlier text stays until the answer comes, as far as it still matches.
  const items = [...matching(pageItems(), text).slice(0, text === '' ? 20 : 6), ...matching(found, text)];
  const current = Math.min(at, items.length - 1);
  // Before the next key is pressed.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  useEffect(() => setAt(0), [text]);
  useEffect(() => {
    document.getElementById(`palette-${current}`)?.scrollIntoView({ block: 'nearest' });
  }, [current]);

  const close = () => {
    paletteOpen.value = false;
  };
  const choose = (item: Item | undefined) => {
    if (!item) return;
    close();
    item.act();
  };
  const press = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) setAt((current + step + items.length) % Math.max(1, items.length));
    else if (event.key === 'Enter') choose(items[current]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Search or command" onClose={close}
      onClick={(event) => event.target === dialog.current && close()}>
      <div class="palette-body">
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={items.length > 0 ? `palette-${current}` : undefined}
          aria-label="Search topics, groups, brokers and commands"
          placeholder="Search topics, groups, brokers and commands"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={press}
        />
        <ul id="palette-list" role="listbox" aria-label="Found">
          {items.map((item, index) => (
            <li
              key={`${item.kind} ${item.name}`}
              id={`palette-${index}`}
              role="option"
              aria-selected={index === current}
              onClick={() => choose(item)}
              onPointerMove={() => setAt(index)}
            >
              <Name text={item.name} />
              <span class="kind">{item.kind}</span>
            </li>
          ))}
        </ul>
        {items.length === 0 && <p class="palette-none">Nothing has this name.</p>}
      </div>
    </dialog>
  );
}
