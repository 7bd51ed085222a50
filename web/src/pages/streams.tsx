/** Spark queries that report their progress to a topic. */
import { useResource } from '../api/resource';
import type { Page, Series, StreamRow } from '../api/types';
import { now } from '../lib/clock';
import { bytes, count, duration, exact, integer, rate, utc } from '../lib/format';
import { href, path } from '../lib/place';
import { Chart } from '../parts/chart';
import { type FigureProps, Figures, PageHead } from '../parts/controls';
import { Empty, ProblemNote, Waiting } from '../parts/feedback';
import { type Column, List } from '../parts/table';
import { Copy, Name, Num, State, type Tone } from '../parts/text';

const TONES: Record<string, Tone> = { running: 'good', active: 'good', idle: 'good', starting: 'info', restarting: 'warning', stopped: 'quiet', failed: 'critical', silent: 'warning' };

function StreamState({ row }: { row: StreamRow }) {
  return <State tone={TONES[row.state.toLowerCase()] ?? 'quiet'} word={row.state.toLowerCase()} title={row.last_error ?? undefined} />;
}

function ago(ms: number | null): string {
  return ms === null ? '–' : `${duration(Math.max(0, Math.floor((now.value - ms) / 1000)))} ago`;
}

const ms = (value: number | null) => duration(value === null ? null : value / 1000);

const COLUMNS: Column<StreamRow>[] = [
  { key: 'name', title: 'Query', width: 200, grow: true, rank: 0, cell: (row) => <a class="row-link" href={href(path('streams', row.name))}><Name text={row.name} /></a>, by: (row) => row.name },
  { key: 'state', title: 'State', width: 112, rank: 1, line: true, cell: (row) => <StreamState row={row} />, by: (row) => row.state },
  { key: 'rows_per_s', title: 'Rows/s', width: 96, right: true, rank: 2, line: true, cell: (row) => <Num short={rate(row.rows_per_s)} exact={exact(row.rows_per_s, 'rows a second')} />, by: (row) => row.rows_per_s },
  { key: 'lag', title: 'Lag', width: 96, right: true, rank: 3, line: true, cell: (row) => <Num short={count(row.lag)} exact={exact(row.lag, 'records')} />, by: (row) => row.lag },
  { key: 'batch_ms', title: 'Batch', hint: 'How long the last micro-batch took', width: 96, right: true, rank: 4, line: true, cell: (row) => <Num short={ms(row.batch_ms)} exact={exact(row.batch_ms, 'ms')} />, by: (row) => row.batch_ms },
  { key: 'restarts', title: 'Restarts', width: 88, right: true, rank: 5, cell: (row) => <Num short={integer(row.restarts)} exact={exact(row.restarts)} />, by: (row) => row.restarts },
  { key: 'state_bytes', title: 'Memory of state', width: 128, right: true, rank: 7, cell: (row) => <Num short={bytes(row.state_bytes)} exact={exact(row.state_bytes, 'bytes')} />, by: (row) => row.state_bytes },
  { key: 'sink', title: 'Writes to', width: 176, rank: 8, cell: (row) => <span title={row.sink ?? undefined}>{row.sink ?? '–'}</span>, by: (row) => row.sink },
  { key: 'updated_ms', title: 'Reported', width: 112, right: true, rank: 6, cell: (row) => <span title={utc(row.updated_ms)}>{ago(row.updated_ms)}</span>, by: (row) => row.updated_ms },
];

export function Streams() {
  const loaded = useResource<Page<StreamRow>>('/streams?limit=1000');
  return (
    <>
      <PageHead title="Streams" />
      {loaded.problem?.status !== 404 && <Waiting of={loaded} />}
      {(loaded.data?.total === 0 || loaded.problem?.status === 404) && (
        <Empty title="No Spark query has reported yet" command="barnabas sql run pipeline.sql --streams-topic __barnabas_streams">
          A query that runs with a progress topic appears here within one micro-batch.
        </Empty>
      )}
      {loaded.data && loaded.data.total > 0 && <List label="Streams" columns={COLUMNS} rows={loaded.data.items} keyOf={(row) => row.name} sortName="sort" />}
    </>
  );
}

function figures(row: StreamRow): FigureProps[] {
  return [
    { label: 'Rows', value: rate(row.rows_per_s), title: exact(row.rows_per_s, 'rows a second'), detail: 'processed' },
    { label: 'Input', value: rate(row.input_per_s), title: exact(row.input_per_s, 'rows a second'), detail: 'arriving' },
    { label: 'Lag', value: count(row.lag), title: exact(row.lag, 'records'), detail: 'records' },
    { label: 'Batch', value: ms(row.batch_ms), title: exact(row.batch_ms, 'ms'), detail: 'the last one' },
    { label: 'State', value: bytes(row.state_bytes), title: exact(row.state_bytes, 'bytes'), detail: `${count(row.state_rows)} rows` },
    { label: 'Restarts', value: integer(row.restarts), detail: `since ${row.since_ms === null ? '–' : ago(row.since_ms)}` },
  ];
}

function Charts({ history }: { history: Series | undefined }) {
  if (!history || history.times_ms.length < 2) return null;
  const times = history.times_ms;
  return (
    <div class="charts">
      <Chart title="Rows" unit="per second" times={times} format={rate} lines={[{ label: 'Rows', values: history.rows_per_s }]} />
      <Chart title="Batch" unit="time" times={times} format={(value) => ms(value ?? null)} lines={[{ label: 'Batch', values: history.batch_ms }]} />
      <Chart title="Lag" unit="records" times={times} format={count} lines={[{ label: 'Lag', values: history.lag }]} />
      <Chart title="State" unit="bytes" times={times} format={bytes} lines={[{ label: 'State', values: history.state_bytes }]} />
    </div>
  );
}

export function StreamPage({ name }: { name: string }) {
  const loaded = useResource<StreamRow & { history?: Series }>(path('streams', name));
  const row = loaded.data;
  return (
    <>
      <PageHead trail={{ to: '/streams', label: 'Streams' }} title={<><Name text={name} /><Copy text={name} label="Copy the name" /></>} state={row && <StreamState row={row} />} />
      <Waiting of={loaded} rows={8} />
      {row && (
        <>
          {row.last_error && <ProblemNote text={row.last_error} />}
          <Figures items={figures(row)} />
          <Charts history={row.history} />
          <dl class="pairs after-charts">
            <div><dt>Reads</dt><dd>{row.sources?.join(', ') ?? '–'}</dd></div>
            <div><dt>Writes to</dt><dd>{row.sink ?? '–'}</dd></div>
            <div><dt>Query id</dt><dd class="mono">{row.query_id ?? '–'}</dd></div>
            <div><dt>Run id</dt><dd class="mono">{row.run_id ?? '–'}</dd></div>
            <div><dt>Reported</dt><dd title={utc(row.updated_ms)}>{ago(row.updated_ms)}</dd></div>
          </dl>
        </>
      )}
    </>
  );
}
