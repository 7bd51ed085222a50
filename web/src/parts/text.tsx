/** Names, numbers and states as they stand in text and tables. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { GroupStatus, Trouble } from '../api/types';
import { UNKNOWN } from '../lib/format';
import { Icon } from './icons';

const TAIL = 8;

/**
 * A name that loses its middle, not its end, where there is no room. The whole name is its title, and what
 * readers of the screen and searches in the page find.
 */
export function Name({ text }: { text: string }) {
  const letters = Array.from(text);
  if (letters.length <= TAIL + 8) {
    return (
      <span class="name" title={text}>
        <span class="name-head">{text}</span>
      </span>
    );
  }
  return (
    <span class="name" title={text}>
      <span class="unseen">{text}</span>
      <span class="name-head" aria-hidden="true">
        {letters.slice(0, -TAIL).join('')}
      </span>
      <span class="name-tail" aria-hidden="true">
        {letters.slice(-TAIL).join('')}
      </span>
    </span>
  );
}

/** A short number with the exact one in its title. An unknown one is a dash. */
export function Num({ short, exact }: { short: string; exact: string }) {
  const kind = short === UNKNOWN ? 'unknown' : short === '0' || /^0[ /]/.test(short) ? 'zero' : '';
  return (
    <span class={kind} title={exact}>
      {short}
      {short === UNKNOWN && <span class="unseen">unknown</span>}
    </span>
  );
}

export type Tone = 'critical' | 'warning' | 'good' | 'info' | 'quiet';

/** A state: a colour with its word. */
export function State({ tone, word, title }: { tone: Tone; word: string; title?: string }) {
  return (
    <span class={`state ${tone}`} title={title}>
      {word}
    </span>
  );
}

/** A state as a label of its own. */
export function Chip({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`chip ${tone}`}>{children}</span>;
}

const STATUS_TONES: Record<GroupStatus, Tone> = {
  ok: 'good',
  behind: 'warning',
  stalled: 'warning',
  stopped: 'critical',
  rewound: 'info',
  unknown: 'quiet',
};

const STATUS_MEANINGS: Record<GroupStatus, string> = {
  ok: 'It keeps up with its partitions.',
  behind: 'It commits, but its lag has not fallen.',
  stalled: 'Its members commit the same offsets again while records wait.',
  stopped: 'It has not committed for a while, and records wait.',
  rewound: 'Its committed offset went back.',
  unknown: 'There are not enough samples yet.',
};

export function StatusOf({ status }: { status: GroupStatus }) {
  return <State tone={STATUS_TONES[status]} word={status} title={STATUS_MEANINGS[status]} />;
}

const TROUBLES: Record<Trouble, [Tone, string, string]> = {
  offline: ['critical', 'offline', 'A partition has no leader: clients can neither read nor write it.'],
  under_min_isr: ['critical', 'under min ISR', 'A partition refuses writes with acks=all.'],
  under_replicated: ['warning', 'under-replicated', 'A replica is not in sync.'],
};

export function TroubleOf({ trouble }: { trouble: Trouble | null }) {
  if (trouble === null) return <State tone="good" word="ok" />;
  const [tone, word, title] = TROUBLES[trouble];
  return <State tone={tone} word={word} title={title} />;
}

const BROKER_TONES: Record<string, Tone> = { up: 'good', fenced: 'critical', down: 'critical' };

export function BrokerState({ state }: { state: string }) {
  return <State tone={BROKER_TONES[state] ?? 'warning'} word={state.replace(/_/g, ' ')} />;
}

const COPIED_MS = 1500;

/** Copies a text, and says so for a moment. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => void navigator.clipboard?.writeText(text).then(() => setCopied(true));
  return (
    <button class="icon-button" type="button" onClick={copy} aria-label={label} title={label}>
      <Icon name={copied ? 'check' : 'copy'} />
      <span class="unseen" role="status">
        {copied ? 'Copied' : ''}
      </span>
    </button>
  );
}

/** Brokers' ids, such as those of replicas; what the other list lacks is marked. */
export function Ids({ ids, except = [], why }: { ids: number[]; except?: number[]; why?: string }) {
  return (
    <span class="ids">
      {ids.map((id) => (
        <span key={id} class={except.includes(id) ? 'id off' : 'id'} title={except.includes(id) ? why : undefined}>
          {id}
          {except.includes(id) && <span class="unseen"> ({why})</span>}
        </span>
      ))}
    </span>
  );
}
