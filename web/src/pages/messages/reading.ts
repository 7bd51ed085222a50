/** Reads messages as the server finds them: a search that ends, or a live tail. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, problemText } from '../../api/client';
import type { Message } from '../../api/types';
import { base } from '../../lib/place';

export type Reason = 'limit' | 'end' | 'time' | 'stopped';

export interface Reading {
  /** The newest first. */
  messages: Message[];
  state: 'reading' | 'live' | 'paused' | 'done' | 'failed' | 'idle';
  scanned: number;
  matched: number;
  errors: number;
  /** Messages that the page could not keep up with. */
  skipped: number;
  reason?: Reason | undefined;
  next?: string | undefined;
  problem?: string | undefined;
}

const IDLE: Reading = { messages: [], state: 'idle', scanned: 0, matched: 0, errors: 0, skipped: 0 };
const SHOWN_MAX = 1000;
const FLUSH_MS = 200;

function newestFirst(a: Message, b: Message): number {
  return b.timestamp_ms - a.timestamp_ms || b.offset - a.offset || a.partition - b.partition;
}

/** Collects events and gives them to the page a few times a second, however many come. */
class Collector {
  private fresh: Message[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private now: Reading;

  constructor(
    private readonly isLive: boolean,
    private readonly show: (reading: Reading) => void,
  ) {
    this.now = { ...IDLE, state: isLive ? 'live' : 'reading' };
    show(this.now);
  }

  add(message: Message): void {
    this.fresh.push(message);
    if (this.fresh.length > SHOWN_MAX) this.fresh.splice(0, this.fresh.length - SHOWN_MAX);
    this.now.matched += this.isLive ? 1 : 0;
    this.later();
  }

  set(changes: Partial<Reading>): void {
    this.now = { ...this.now, ...changes };
    this.later();
  }

  skip(records: number): void {
    this.set({ skipped: this.now.skipped + records });
  }

  /** Shows everything at once; for the end. */
  end(changes: Partial<Reading>): void {
    this.now = { ...this.now, ...changes };
    this.flush();
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private later(): void {
    this.timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const messages = [...this.fresh.sort(newestFirst), ...this.now.messages];
    if (!this.isLive) messages.sort(newestFirst);
    this.fresh = [];
    this.now = { ...this.now, messages: messages.slice(0, SHOWN_MAX) };
    this.show(this.now);
  }
}

type Data = Record<string, unknown>;

function listen(source: EventSource, collector: Collector, path: string): void {
  const on = (name: string, take: (data: Data) => void) =>
    source.addEventListener(name, (event) => take(JSON.parse((event as MessageEvent<string>).data) as Data));
  on('record', (data) => collector.add(data as unknown as Message));
  on('progress', ({ scanned, matched, errors }) =>
    collector.set({ scanned: Number(scanned), matched: Number(matched), errors: Number(errors) }),
  );
  on('skipped', ({ records }) => collector.skip(Number(records)));
  on('paused', ({ reason }) => collector.set({ state: 'paused', problem: typeof reason === 'string' ? reason : undefined }));
  on('resumed', () => collector.set({ state: 'live', problem: undefined }));
  on('done', ({ reason, next }) => {
    source.close();
    collector.end({ state: 'done', reason: reason as Reason, next: typeof next === 'string' ? next : undefined });
  });
  on('failed', ({ error }) => {
    source.close();
    collector.end({ state: 'failed', problem: String(error) });
  });
  source.addEventListener('error', () => {
    if (source.readyState !== EventSource.CLOSED) return;
    // An event source does not tell why it was refused; the same question by fetch does.
    void get(path).catch((error: unknown) => collector.end({ state: 'failed', problem: problemText(error) }));
  });
}

/** Reads the path of the API while the page shows it. Another `round` reads it again. */
export function useReading(path: string | null, isLive: boolean, round: number): Reading & { stop: () => void } {
  const [reading, setReading] = useState<Reading>(IDLE);
  const stop = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (path === null) {
      setReading(IDLE);
      return;
    }
    const collector = new Collector(isLive, setReading);
    const source = new EventSource(`${base}/api${path}`);
    listen(source, collector, path);
    const close = () => {
      source.close();
      collector.close();
    };
    stop.current = () => {
      close();
      setReading((was) => ({ ...was, state: 'done', reason: 'stopped' }));
    };
    return close;
  }, [path, isLive, round]);
  return { ...reading, stop: () => stop.current() };
}
