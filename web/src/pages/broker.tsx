/** One broker: is it well, what is slow, can it be restarted. */
import { useResource } from '../api/resource';
import type { Broker, SlowRequest } from '../api/types';
import { bytes, bytesRate, duration, exact, integer, percent, rate, time, utc } from '../lib/format';
import { path, query } from '../lib/place';
import { Chart } from '../parts/chart';
import { Choices, type FigureProps, Figures, PageHead } from '../parts/controls';
import { Empty, Waiting } from '../parts/feedback';
import { type Column, List } from '../parts/table';
import { BrokerState, Chip, Num } from '../parts/text';
import { busyTone, diskTone } from './broker_columns';
import { ConfigTable } from './config_table';

const PARTS = ['loop', 'handler', 'disk', 'peers', 'sending'] as const;
const PART_WORDS = { loop: 'waiting for the loop', handler: 'in the handler', disk: 'on the disk', peers: 'on other brokers', sending: 'sending' };

/** Where the time of a slow request went, as one bar. */
function Spent({ row }: { row: SlowRequest }) {
  const known = PARTS.map((name) => ({ name, ms: row.parts[name] ?? 0 })).filter(({ ms }) => ms > 0);
  const total = known.reduce((sum, { ms }) => sum + ms, 0);
  if (total === 0) return <span class="unknown">–</span>;
  const text = known.map(({ name, ms }) => `${duration(ms / 1000)} ${PART_WORDS[name]}`).join(', ');
  let at = 0;
  return (
    <span class="spent" title={text}>
      <svg width="120" height="8" viewBox="0 0 120 8" role="img" aria-label={text}>
        {known.map(({ name, ms }) => {
          const width = (ms / total) * 120;
          const x = at;
          at += width;
          return <rect key={name} class={`spent-${name}`} x={x} width={Math.max(1, width - 1)} height="8" />;
        })}
      </svg>
      {largest(known)}
    </span>
  );
}

function largest(known: { name: (typeof PARTS)[number]; ms: number }[]): string {
  const most = known.reduce((a, b) => (b.ms > a.ms ? b : a));
  return PART_WORDS[most.name];
}

const SLOW: Column<SlowRequest>[] = [
  { key: 'at_ms', title: 'At', width: 192, rank: 2, line: true, cell: (row) => <span title={utc(row.at_ms)}>{time(row.at_ms)}</span>, by: (row) => row.at_ms },
  { key: 'api', title: 'Request', width: 152, grow: true, rank: 0, cell: (row) => <b>{row.api}</b>, by: (row) => row.api },
  { key: 'took_ms', title: 'Took', width: 96, right: true, rank: 1, cell: (row) => <Num short={duration(row.took_ms / 1000)} exact={exact(row.took_ms, 'ms')} />, by: (row) => row.took_ms },
  { key: 'spent', title: 'Most of it', hint: 'Where the time went', width: 280, rank: 3, fixed: true, cell: (row) => <Spent row={row} /> },
  { key: 'client_id', title: 'Client', width: 176, rank: 4, cell: (row) => row.client_id ?? '–', by: (row) => row.client_id },
  { key: 'host', title: 'Host', width: 136, rank: 5, cell: (row) => <span class="mono">{row.host ?? '–'}</span>, by: (row) => row.host },
  { key: 'bytes', title: 'Size', width: 96, right: true, rank: 6, cell: (row) => <Num short={bytes(row.bytes)} exact={exact(row.bytes, 'bytes')} />, by: (row) => row.bytes },
];

function figures(of: Broker): FigureProps[] {
  return [
    { label: 'Loop busy', value: percent(of.loop_busy_ratio), title: exact(of.loop_busy_ratio), detail: 'share of time at work', tone: busyTone(of.loop_busy_ratio) },
    { label: 'Disk used', value: percent(of.disk_used_ratio), title: exact(of.disk_used_ratio), detail: `${bytes(of.disk_free_bytes)} free`, tone: diskTone(of.disk_used_ratio) },
    { label: 'In', value: bytesRate(of.bytes_in_per_s), title: exact(of.bytes_in_per_s, 'bytes a second'), detail: rate(of.records_per_s) },
    { label: 'Out', value: bytesRate(of.bytes_out_per_s), title: exact(of.bytes_out_per_s, 'bytes a second'), detail: 'to consumers' },
    { label: 'Leads', value: integer(of.partitions.leaders), detail: `of ${integer(of.partitions.replicas)} replicas here` },
    { label: 'Connections', value: integer(of.connections), detail: of.version ? `Barnabas ${of.version}` : '' },
    { label: 'Quorum', value: of.quorum?.role ?? '–', detail: `${integer(of.quorum?.lag)} records behind` },
  ];
}

function RestartSafe({ of }: { of: NonNullable<Broker['restart_safe']> }) {
  const tone = of.safe === null ? 'info' : of.safe ? 'good' : 'warning';
  const word = of.safe === null ? 'restart: unknown' : of.safe ? 'safe to restart' : 'do not restart';
  return (
    <div class={`note health ${tone}`}>
      <Chip tone={tone}>{word}</Chip>
      {of.reasons.length === 0 ? (
        <p>Without this broker, all partitions keep their minimum of in-sync replicas.</p>
      ) : (
        <ul>
          {of.reasons.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Charts({ history }: { history: Broker['history'] }) {
  if (!history || history.times_ms.length < 2) return null;
  const times = history.times_ms;
  return (
    <div class="charts">
      <Chart ofMetrics title="Traffic" unit="bytes per second" times={times} format={bytesRate}
        lines={[{ label: 'In', values: history.bytes_in_per_s }, { label: 'Out', values: history.bytes_out_per_s }]} />
      <Chart ofMetrics title="Records" unit="per second" times={times} format={rate} lines={[{ label: 'Records', values: history.records_per_s }]} />
      {history.produce_p99_s && <Chart ofMetrics title="Produce p99" unit="time to answer" isTime times={times} format={duration} lines={[{ label: 'Produce p99', values: history.produce_p99_s }]} />}
    </div>
  );
}

function Slow({ rows }: { rows: SlowRequest[] | null }) {
  if (rows === null) return <Empty title="Slow requests are unknown">Start the console with --metrics and the brokers’ addresses.</Empty>;
  if (rows.length === 0) return <Empty title="No request was slow" />;
  return <List label="Slow requests" columns={SLOW} rows={rows} keyOf={(row) => `${row.at_ms} ${row.api} ${row.client_id}`} sortName="sort" />;
}

export function BrokerPage({ id }: { id: string }) {
  const loaded = useResource<Broker>(path('brokers', id));
  const broker = loaded.data;
  const tab = query.value.get('show') ?? 'slow';
  return (
    <>
      <PageHead
        trail={{ to: '/brokers', label: 'Brokers' }}
        title={`Broker ${id}`}
        state={
          broker && (
            <>
              <BrokerState state={broker.state} />
              {broker.is_controller && <Chip tone="quiet">controller</Chip>}
              {broker.address && <span class="quiet-line mono">{broker.address}</span>}
            </>
          )
        }
      />
      <Waiting of={loaded} rows={8} />
      {broker && (
        <>
          {broker.silence && <div class="note warning"><p>{broker.silence}</p></div>}
          {broker.restart_safe && <RestartSafe of={broker.restart_safe} />}
          <Figures items={figures(broker)} />
          <Charts history={broker.history} />
          <div class="toolbar after-charts">
            <Choices label="Show" name="show" choices={[{ value: 'slow', label: 'Slow requests', count: broker.slow_requests?.length }, { value: 'settings', label: 'Settings' }]} />
          </div>
          {tab === 'settings' ? (broker.configs ? <ConfigTable rows={broker.configs} topic={null} /> : <Empty title="The broker did not tell its settings">{broker.configs_failure}</Empty>) : <Slow rows={broker.slow_requests} />}
        </>
      )}
    </>
  );
}
