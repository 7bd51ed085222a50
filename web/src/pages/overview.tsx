/** The cluster on one page: health, flow, and what needs a look. */
import { useResource } from '../api/resource';
import type { GroupStatus, Overview } from '../api/types';
import { bytesRate, count, duration, exact, integer, percent, plural, rate } from '../lib/format';
import { href } from '../lib/place';
import { Chart } from '../parts/chart';
import { type FigureProps, Figures, PageHead, Section } from '../parts/controls';
import { Empty, Waiting } from '../parts/feedback';
import { List } from '../parts/table';
import { Chip, State, StatusOf, type Tone } from '../parts/text';
import { BROKER_COLUMNS, diskTone } from './broker_columns';
import { GROUP_COLUMNS } from './group_columns';
import { TOPIC_COLUMNS } from './topic_columns';

const VERDICTS: Record<string, Tone> = { healthy: 'good', degraded: 'warning', unavailable: 'critical' };

function Health({ health }: { health: Overview['health'] }) {
  const tone = VERDICTS[health.verdict] ?? 'warning';
  const said = [...health.reasons, ...health.warnings];
  return (
    <div class={`note health ${tone}`}>
      <Chip tone={tone}>{health.verdict}</Chip>
      {said.length === 0 ? (
        <p>All partitions have a leader and all their replicas.</p>
      ) : (
        <ul>
          {said.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      )}
      {tone !== 'good' && <a href={href('/alerts')}>What to do</a>}
    </div>
  );
}

function figures(of: Overview): FigureProps[] {
  const { throughput, disk, counts } = of;
  const full = disk.full_in_s === null ? '' : `full in ${duration(disk.full_in_s)}`;
  return [
    { label: 'Records', value: rate(throughput.records_per_s), title: exact(throughput.records_per_s, 'records a second'), detail: `in ${plural(counts.topics ?? 0, 'topic')}`, to: '/topics?sort=-records_per_s' },
    { label: 'In', value: bytesRate(throughput.bytes_in_per_s), title: exact(throughput.bytes_in_per_s, 'bytes a second'), detail: 'from producers' },
    { label: 'Out', value: bytesRate(throughput.bytes_out_per_s), title: exact(throughput.bytes_out_per_s, 'bytes a second'), detail: 'to consumers' },
    { label: 'Produce p99', value: duration(throughput.produce_p99_s), title: exact(throughput.produce_p99_s, 'seconds'), detail: 'slowest broker' },
    { label: 'Fetch p99', value: duration(throughput.fetch_p99_s), title: exact(throughput.fetch_p99_s, 'seconds'), detail: 'without the wait asked for' },
    { label: 'Disk', value: percent(disk.used_ratio), title: `${exact(disk.used_ratio)} of the fullest disk`, detail: full, tone: diskTone(disk.used_ratio), to: '/brokers?sort=-disk_used_ratio' },
    { label: 'Partitions', value: count(counts.partitions), title: exact(counts.partitions), detail: `on ${integer(counts.brokers_up)} of ${plural(counts.brokers ?? 0, 'broker')}`, to: '/heatmap' },
  ];
}

const FACTS: [keyof Overview['partitions'], string, Tone, string][] = [
  ['offline', 'offline', 'critical', '/topics?sort=-trouble'],
  ['under_min_isr', 'under min ISR', 'critical', '/topics?sort=-trouble'],
  ['under_replicated', 'under-replicated', 'warning', '/topics?sort=-trouble'],
  ['reassigning', 'moving', 'info', '/plans'],
  ['not_led_as_preferred', 'not led as preferred', 'info', '/plans?kind=elect'],
];

function PartitionFacts({ partitions }: { partitions: Overview['partitions'] }) {
  return (
    <ul class="facts" aria-label="Partitions by state">
      {FACTS.map(([name, word, tone, to]) => (
        <li key={name}>
          <a href={href(to)}>
            <State tone={(partitions[name] ?? 0) > 0 ? tone : 'quiet'} word={`${integer(partitions[name])} ${word}`} />
          </a>
        </li>
      ))}
    </ul>
  );
}

const STATUSES: GroupStatus[] = ['stopped', 'stalled', 'behind', 'rewound', 'unknown', 'ok'];

function GroupCounts({ counts }: { counts: Overview['groups_by_status'] }) {
  return (
    <ul class="facts" aria-label="Groups by status">
      {STATUSES.filter((status) => (counts[status] ?? 0) > 0).map((status) => (
        <li key={status}>
          <a href={href(`/groups?status=${status}`)}>
            {counts[status]} <StatusOf status={status} />
          </a>
        </li>
      ))}
    </ul>
  );
}

function Charts({ history }: { history: Overview['history'] }) {
  const times = history.times_ms;
  if (times.length < 2) return null;
  return (
    <div class="charts">
      <Chart title="Records" unit="per second" times={times} format={rate} lines={[{ label: 'Records', values: history.records_per_s }]} />
      <Chart ofMetrics title="Traffic" unit="bytes per second" times={times} format={bytesRate}
        lines={[{ label: 'In', values: history.bytes_in_per_s }, { label: 'Out', values: history.bytes_out_per_s }]} />
      <Chart title="Lag of all groups" unit="records" times={times} format={count} lines={[{ label: 'Lag', values: history.lag }]} />
      <Chart ofMetrics title="Produce p99" unit="time to answer" isTime times={times} format={duration} lines={[{ label: 'Produce p99', values: history.produce_p99_s }]} />
    </div>
  );
}

function NoTopics() {
  return <Empty title="There are no topics yet" command="barnabas topic create orders --partitions 6" />;
}

export function OverviewPage() {
  const loaded = useResource<Overview>('/overview');
  const { data } = loaded;
  return (
    <>
      <PageHead title="Overview" />
      <Waiting of={loaded} rows={10} />
      {data && (
        <>
          <Health health={data.health} />
          {data.troubles?.map((trouble) => (
            <div key={trouble} class="note info">
              <p>Not collected this time: {trouble}</p>
            </div>
          ))}
          <Figures items={figures(data)} />
          <PartitionFacts partitions={data.partitions} />
          <Charts history={data.history} />
          <Section title="Brokers" action={<a href={href('/brokers')}>All brokers</a>}>
            <List label="Brokers" columns={BROKER_COLUMNS} rows={data.brokers} keyOf={(row) => String(row.id)} sortName="brokers" />
          </Section>
          <Section title="Groups that need a look" note={<GroupCounts counts={data.groups_by_status} />} action={<a href={href('/groups?sort=-lag_s')}>All groups</a>}>
            {data.worst_groups.length === 0 ? (
              <p class="quiet-line">No group has a lag.</p>
            ) : (
              <List label="Groups that need a look" columns={GROUP_COLUMNS} rows={data.worst_groups} keyOf={(row) => row.name} sortName="worst" />
            )}
          </Section>
          <Section title="Busiest topics" action={<a href={href('/topics?sort=-records_per_s')}>All topics</a>}>
            {data.hottest_topics.length === 0 ? (
              <NoTopics />
            ) : (
              <List label="Busiest topics" columns={TOPIC_COLUMNS} rows={data.hottest_topics} keyOf={(row) => row.name} sortName="hottest" />
            )}
          </Section>
        </>
      )}
    </>
  );
}
