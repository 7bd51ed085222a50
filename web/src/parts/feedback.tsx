/** What a page shows while there is nothing else to show: skeletons, empty states, problems, notices. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Icon } from './icons';
import { Copy } from './text';

export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="unseen">Loading</span>
      {Array.from({ length: rows }, (_, row) => (
        <i key={row} class={`bar w${row % 4}`} />
      ))}
    </div>
  );
}

/** Says that there is nothing, and what to type to change that. */
export function Empty(props: { title: string; command?: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children && <p>{props.children}</p>}
      {props.command && (
        <p class="command">
          <code>{props.command}</code>
          <Copy text={props.command} label="Copy the command" />
        </p>
      )}
    </div>
  );
}

export function ProblemNote({ text, again }: { text: string; again?: () => void }) {
  return (
    <div class="note critical" role="alert">
      <p>{text}</p>
      {again && (
        <button class="button small" type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

interface Loaded {
  data: unknown;
  problem: Error | undefined;
  slow: boolean;
  again: () => void;
}

/** A problem or a skeleton; null once there is data and all is well. */
export function Waiting({ of, rows }: { of: Loaded; rows?: number }) {
  if (of.problem) return <ProblemNote text={of.problem.message} again={of.again} />;
  if (of.data === undefined && of.slow) return <Skeleton rows={rows} />;
  return null;
}

interface Notice {
  id: number;
  text: string;
}

const NOTICE_MS = 6000;
const notices = signal<Notice[]>([]);
let lastId = 0;

/** Says at the bottom of the page what has been done. */
export function say(text: string): void {
  lastId += 1;
  const notice = { id: lastId, text };
  notices.value = [...notices.value.slice(-2), notice];
  setTimeout(() => dismiss(notice.id), NOTICE_MS);
}

function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text }) => (
        <div key={id} class="notice">
          <Icon name="check" />
          <span>{text}</span>
          <button class="icon-button" type="button" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
