/** Partitions by broker, coloured by size, rate or lag: skew at a glance. */
import { useState } from 'preact/hooks';
import { useResource } from '../api/resource';
import type { HeatMap, Maybe } from '../api/types';
import { bytes, count, exact, plural, rate } from '../lib/format';
import { href, path, query } from '../lib/place';
import { isNarrow } from '../lib/screen';
import { Choices, PageHead, Section } from '../parts/controls';
import { Empty, Waiting } from '../parts/feedback';
import { type Column, List } from '../parts/table';
import { Name, Num } from '../parts/text';

interface Cell {
  topic: string;
  broker: number;
  partition: number;
  value: Maybe<number>;
  leads: boolean;
}

const MEASURES = [
  { value: 'size', label: 'Size' },
  { value: 'records', label: 'Records/s' },
  { value: 'lag', label: 'Lag' },
];
const FORMATS: Record<string, (value: Maybe<number>) => string> = { size: bytes, records: rate, lag: count };
const UNITS: Record<string, string> = { size: 'bytes', records: 'records a second', lag: 'records' };
const STEPS = 6;
const SQUARE = 14;
const PITCH = 16;
const LARGEST = 20;

function cellsOf(map: HeatMap): Cell[] {
  return map.cells.map(([topic, broker, partition, value, leads]) => ({
    topic: map.topics[topic] ?? '',
    broker: map.brokers[broker] ?? -1,
    partition,
    value,
    leads,
  }));
}

/** Steps by order of magnitude below the largest, so that one giant does not turn all others pale. */
function step(value: Maybe<number>, most: number): string {
  if (value === null) return 'none';
  if (value <= 0 || most <= 0) return 'h0';
  const share = Math.log10(1 + (9999 * value) / most) / 4;
  return `h${Math.max(1, Math.min(STEPS, Math.ceil(share * STEPS)))}`;
}

function titleOf(cell: Cell, measure: string): string {
  const role = cell.leads ? 'leader' : 'follower';
  return `${cell.topic}-${cell.partition} on broker ${cell.broker} (${role}): ${FORMATS[measure]?.(cell.value) ?? ''}`;
}

function Squares({ cells, perLine, most, measure, show }: { cells: Cell[]; perLine: number; most: number; measure: string; show: (text: string) => void }) {
  const lines = Math.max(1, Math.ceil(cells.length / perLine));
  return (
    <svg class="squares" width={Math.min(perLine, Math.max(1, cells.length)) * PITCH} height={lines * PITCH} aria-hidden="true" onPointerLeave={() => show('')}>
      {cells.map((cell, at) => (
        <rect
          key={cell.partition}
          class={`${step(cell.value, most)} ${cell.leads ? 'leads' : ''}`}
          x={(at % perLine) * PITCH + 1}
          y={Math.floor(at / perLine) * PITCH + 1}
          width={SQUARE}
          height={SQUARE}
          rx="2"
          onPointerEnter={() => show(titleOf(cell, measure))}
        />
      ))}
    </svg>
  );
}

function sum(cells: Cell[]): number {
  return cells.reduce((total, cell) => total + (cell.value ?? 0), 0);
}

/** How many squares of a broker fit beside each other. */
function lineOf(brokers: number): number {
  const room = Math.min(window.innerWidth, 1680) - (isNarrow.value ? 190 : 440);
  return Math.max(4, Math.min(32, Math.floor(room / brokers / PITCH) - 2));
}

function PartitionMap({ map, cells, measure }: { map: HeatMap; cells: Cell[]; measure: string }) {
  const [hover, show] = useState('');
  const most = Math.max(...cells.map((cell) => cell.value ?? 0), 0);
  const format = FORMATS[measure] ?? count;
  const perLine = lineOf(map.brokers.length);
  const byPlace = new Map<string, Cell[]>();
  for (const cell of cells) {
    const key = `${cell.broker} ${cell.topic}`;
    byPlace.set(key, [...(byPlace.get(key) ?? []), cell]);
  }
  for (const here of byPlace.values()) {
    here.sort((a, b) => a.partition - b.partition);
  }
  return (
    <>
      <div class="toolbar">
        <p class="heat-legend" aria-hidden="true">
          less
          <svg width={(STEPS + 1) * PITCH} height={PITCH}>
            {Array.from({ length: STEPS + 1 }, (_, at) => (
              <rect key={at} class={`h${at}`} x={at * PITCH + 1} y="1" width={SQUARE} height={SQUARE} rx="2" />
            ))}
          </svg>
          more
          <svg width={PITCH} height={PITCH}><rect class="h2 leads" x="1" y="1" width={SQUARE} height={SQUARE} rx="2" /></svg>
          leader
        </p>
        <p class="heat-hover" role="status">{hover}</p>
      </div>
      <div class="heat" role="region" aria-label="Partitions by broker" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Topic</th>
              {map.brokers.map((broker) => (
                <th key={broker} scope="col">
                  <a href={href(path('brokers', broker))}>Broker {broker}</a>
                  <span class="count">{format(sum(cells.filter((cell) => cell.broker === broker)))}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {map.topics.map((topic) => (
              <tr key={topic}>
                <th scope="row">
                  <a href={href(path('topics', topic, 'partitions'))}><Name text={topic} /></a>
                </th>
                {map.brokers.map((broker) => {
                  const here = byPlace.get(`${broker} ${topic}`) ?? [];
                  return (
                    <td key={broker}>
                      <span class="unseen">{here.length === 0 ? 'none' : `${plural(here.length, 'replica')}, ${format(sum(here))}`}</span>
                      <Squares cells={here} perLine={perLine} most={most} measure={measure} show={show} />
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function largestColumns(measure: string): Column<Cell>[] {
  const format = FORMATS[measure] ?? count;
  return [
    { key: 'topic', title: 'Partition', width: 200, grow: true, rank: 0, cell: (row) => <a class="row-link" href={href(path('topics', row.topic, 'partitions'))}><Name text={`${row.topic}-${row.partition}`} /></a>, by: (row) => row.topic },
    { key: 'broker', title: 'Broker', width: 96, rank: 1, cell: (row) => <a href={href(path('brokers', row.broker))}>Broker {row.broker}</a>, by: (row) => row.broker },
    { key: 'leads', title: 'Role', width: 96, rank: 2, cell: (row) => (row.leads ? 'leader' : 'follower'), by: (row) => (row.leads ? 0 : 1) },
    { key: 'value', title: MEASURES.find(({ value }) => value === measure)?.label ?? '', width: 112, right: true, rank: 1, cell: (row) => <Num short={format(row.value)} exact={exact(row.value, UNITS[measure])} />, by: (row) => row.value },
  ];
}

export function HeatMapPage() {
  const measure = query.value.get('by') ?? 'size';
  const loaded = useResource<HeatMap>(`/heatmap?by=${encodeURIComponent(measure)}`, { keep: true });
  const cells = loaded.data ? cellsOf(loaded.data) : [];
  const largest = [...cells].sort((a, b) => (b.value ?? 0) - (a.value ?? 0)).slice(0, LARGEST);
  return (
    <>
      <PageHead title="Heat map" />
      <div class="toolbar">
        <Choices label="Coloured by" name="by" choices={MEASURES} />
      </div>
      <Waiting of={loaded} rows={12} />
      {loaded.data && cells.length === 0 && <Empty title="There are no partitions yet" command="barnabas topic create orders --partitions 6" />}
      {loaded.data && cells.length > 0 && (
        <>
          <PartitionMap map={loaded.data} cells={cells} measure={measure} />
          <Section title="Largest">
            <List label="Largest" columns={largestColumns(measure)} rows={largest} keyOf={(row) => `${row.broker} ${row.topic}-${row.partition}`} sortName="sort" />
          </Section>
        </>
      )}
    </>
  );
}
