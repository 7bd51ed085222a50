/** The messages of one topic: search, live tail, one in full, export. */
import { useState } from 'preact/hooks';
import type { Message } from '../../api/types';
import { bytes, clock, count, day, exact, integer, plural, shellWord, time, utc } from '../../lib/format';
import { now } from '../../lib/clock';
import { href, query, setQuery } from '../../lib/place';
import { here } from '../../parts/controls';
import { Empty, ProblemNote, Skeleton } from '../../parts/feedback';
import { Icon } from '../../parts/icons';
import { type Column, Grid } from '../../parts/table';
import { Controls } from './controls';
import { Preview } from './content';
import { Detail } from './detail';
import { exportPath, filtersOf, searchPath, tailPath } from './question';
import { type Reading, useReading } from './reading';

function placeOf(message: Message): string {
  return `${message.partition}:${message.offset}`;
}

/** The time alone for messages of today. */
function when(ms: number) {
  if (ms < 0) return <span class="unknown">–</span>;
  const at = time(ms);
  return <span title={utc(ms)}>{day(ms) === day(now.peek()) ? `${clock(ms)}${at.slice(-4)}` : at}</span>;
}

const COLUMNS: Column<Message>[] = [
  { key: 'time', title: 'Time', width: 176, rank: 3, fixed: true, line: true, cell: (row) => when(row.timestamp_ms) },
  { key: 'partition', title: 'Partition', width: 96, right: true, rank: 4, fixed: true, cell: (row) => row.partition },
  { key: 'offset', title: 'Offset', width: 112, right: true, rank: 1, fixed: true, line: true, cell: (row) => <span class="mono">{integer(row.offset)}</span> },
  { key: 'key', title: 'Key', width: 160, rank: 2, fixed: true, line: true, cell: (row) => <Preview content={row.key} /> },
  { key: 'value', title: 'Value', width: 200, grow: true, rank: 0, fixed: true, cell: valueLink },
  { key: 'size', title: 'Size', width: 80, right: true, rank: 5, fixed: true, cell: (row) => <span title={exact(row.size_bytes, 'bytes')}>{bytes(row.size_bytes)}</span> },
];

function valueLink(row: Message) {
  return (
    <a class="row-link value" href={href(here({ open: placeOf(row) }))}>
      <Preview content={row.value} />
    </a>
  );
}

const REASONS = {
  limit: 'There are more.',
  end: 'That is all up to the end.',
  time: 'The search took too long and stopped here.',
  stopped: 'Stopped.',
};

/** The newest messages are all there is to show of them. */
function isNewest(): boolean {
  return !query.value.get('from') && Object.keys(filtersOf(query.value)).length === 0;
}

function Progress({ reading, isLive }: { reading: Reading; isLive: boolean }) {
  const { state, scanned, errors, skipped, messages } = reading;
  if (isLive) {
    return (
      <p class="progress" role="status">
        {state === 'paused' ? `Waiting: ${reading.problem ?? 'a leader is away'}` : `${count(reading.matched)} received`}
        {skipped > 0 && <span class="state warning">{plural(skipped, 'message')} skipped: the page was too slow</span>}
      </p>
    );
  }
  return (
    <p class="progress" role="status">
      {plural(messages.length, 'message')}
      {scanned > messages.length && ` of ${count(scanned)} scanned`}
      {errors > 0 && <span class="state warning">{count(errors)} could not be judged</span>}
      {state === 'reading' && <span>reading …</span>}
      {state === 'done' && reading.reason && !isNewest() && <span>{REASONS[reading.reason]}</span>}
    </p>
  );
}

function Buttons(props: { topic: string; reading: Reading & { stop: () => void }; isLive: boolean; again: () => void }) {
  const { topic, reading, isLive } = props;
  return (
    <div class="actions push">
      {reading.state === 'done' && reading.reason !== 'end' && reading.next && !isLive && !isNewest() && (
        <button class="button" type="button" onClick={() => setQuery({ from: reading.next, open: '' }, { replace: false })}>
          Read on
        </button>
      )}
      {reading.state === 'reading' ? (
        <button class="button" type="button" onClick={reading.stop}>
          <Icon name="stop" /> Stop
        </button>
      ) : (
        !isLive && (
          <button class="button" type="button" onClick={props.again}>
            Read again
          </button>
        )
      )}
      <button class="button" type="button" aria-pressed={isLive} onClick={() => setQuery({ live: isLive ? '' : '1', open: '' }, { replace: false })}>
        <Icon name={isLive ? 'pause' : 'play'} /> {isLive ? 'Stop the tail' : 'Live tail'}
      </button>
      <a class="button" href={href(`/api${exportPath(topic, 'jsonl')}`)} download>
        <Icon name="download" /> JSONL
      </a>
      <a class="button" href={href(`/api${exportPath(topic, 'csv')}`)} download>
        <Icon name="download" /> CSV
      </a>
    </div>
  );
}

function Nothing({ topic, reading, isLive }: { topic: string; reading: Reading; isLive: boolean }) {
  if (reading.state === 'reading') return <Skeleton rows={10} />;
  if (isLive) return <Empty title="Waiting for messages" command={`barnabas produce ${shellWord(topic)}`} />;
  if (reading.state !== 'done') return null;
  if (Object.keys(filtersOf(query.value)).length > 0) {
    return <Empty title="No message matches">The search read {plural(reading.scanned, 'message')}. Begin earlier, or change the filters.</Empty>;
  }
  return <Empty title="There is no message here" command={`barnabas produce ${shellWord(topic)}`} />;
}

/** While the page is scrolled down, new messages wait, so that nothing moves under the reader's eyes. */
function useHeld(messages: Message[], isLive: boolean): [Message[], number, () => void] {
  const [held, setHeld] = useState<Message[] | null>(null);
  const away = isLive && (window.scrollY > 120 || query.value.has('open'));
  if (away && held === null && messages.length > 0) setHeld(messages);
  if (!away && held !== null) setHeld(null);
  if (!away || held === null) return [messages, 0, () => undefined];
  const first = held[0];
  const fresh = first ? messages.findIndex((each) => placeOf(each) === placeOf(first)) : 0;
  return [held, fresh < 0 ? messages.length : fresh, () => setHeld(messages)];
}

function Reader({ topic, partitions }: { topic: string; partitions: number }) {
  const [round, setRound] = useState(0);
  const isLive = query.value.get('live') === '1';
  const reading = useReading(isLive ? tailPath(topic) : searchPath(topic, partitions), isLive, round);
  const open = query.value.get('open');
  const [messages, fresh, show] = useHeld(reading.messages, isLive);
  return (
    <>
      <div class="toolbar">
        <Progress reading={reading} isLive={isLive} />
        {fresh > 0 && (
          <button class="button small primary" type="button" onClick={show}>
            Show {count(fresh)} new
          </button>
        )}
        <Buttons topic={topic} reading={reading} isLive={isLive} again={() => setRound(round + 1)} />
      </div>
      {reading.state === 'failed' && <ProblemNote text={reading.problem ?? ''} again={() => setRound(round + 1)} />}
      {messages.length === 0 ? (
        <Nothing topic={topic} reading={reading} isLive={isLive} />
      ) : (
        <Grid label="Messages" columns={COLUMNS} total={messages.length} rowAt={(at) => messages[at]} keyOf={placeOf} isOpen={(row) => placeOf(row) === open} />
      )}
      {open && <Detail topic={topic} place={open} />}
    </>
  );
}

/** Without the topic's partitions, it is not known how many messages are the newest. */
export function Browser({ topic, partitions }: { topic: string; partitions: number[] | undefined }) {
  return (
    <div class="browser">
      <Controls />
      {partitions && <Reader topic={topic} partitions={partitions.length} />}
    </div>
  );
}
