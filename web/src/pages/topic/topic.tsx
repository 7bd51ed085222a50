/** One topic: its messages, partitions, groups and settings. */
import { useResource } from '../../api/resource';
import type { ConfigRow, Topic } from '../../api/types';
import { bytes, bytesRate, count, duration, exact, integer, rate, shellWord } from '../../lib/format';
import { href, path } from '../../lib/place';
import { Chart } from '../../parts/chart';
import { ChangeButton, Figures, PageHead, Tabs } from '../../parts/controls';
import { showDialog } from '../../parts/dialog';
import { Empty, Waiting } from '../../parts/feedback';
import { type Column, List } from '../../parts/table';
import { Chip, Copy, Ids, Name, Num, StatusOf, TroubleOf } from '../../parts/text';
import { ConfigTable } from '../config_table';
import { GroupLink, seconds } from '../group_columns';
import { Browser } from '../messages/browser';
import { Produce } from '../messages/produce';
import { groupsOf } from '../topic_columns';
import { AddPartitions, DeleteNamed, DeleteRecords } from './changes';

type Partition = Topic['partition_list'][number];
type Reader = Topic['group_list'][number];

const PARTITION_COLUMNS: Column<Partition>[] = [
  { key: 'number', title: 'Partition', width: 88, grow: true, rank: 0, cell: (row) => row.number, by: (row) => row.number },
  { key: 'leader', title: 'Leader', width: 96, rank: 1, cell: (row) => (row.leader === null ? <span class="state critical">none</span> : <a href={href(path('brokers', row.leader))}>Broker {row.leader}</a>), by: (row) => row.leader },
  { key: 'replicas', title: 'Replicas', hint: 'Those out of sync are marked', width: 136, rank: 2, fixed: true, cell: (row) => <Ids ids={row.replicas} except={row.replicas.filter((id) => !row.in_sync.includes(id))} why="not in sync" /> },
  { key: 'start', title: 'Start', hint: 'The first offset', width: 120, right: true, rank: 6, cell: (row) => <span class="mono">{integer(row.start)}</span>, by: (row) => row.start },
  { key: 'end', title: 'End', hint: 'The high watermark', width: 120, right: true, rank: 4, line: true, cell: (row) => <span class="mono">{integer(row.end)}</span>, by: (row) => row.end },
  { key: 'records', title: 'Records', width: 104, right: true, rank: 5, cell: (row) => <Num short={count(held(row))} exact={exact(held(row), 'records')} />, by: held },
  { key: 'size_bytes', title: 'Size', width: 96, right: true, rank: 3, line: true, cell: (row) => <Num short={bytes(row.size_bytes)} exact={exact(row.size_bytes, 'bytes')} />, by: (row) => row.size_bytes },
  { key: 'records_per_s', title: 'Records/s', width: 104, right: true, rank: 3, line: true, cell: (row) => <Num short={rate(row.records_per_s)} exact={exact(row.records_per_s, 'records a second')} />, by: (row) => row.records_per_s },
];

function held(row: Partition): number | null {
  return row.start === null || row.end === null ? null : row.end - row.start;
}

const READER_COLUMNS: Column<Reader>[] = [
  { key: 'name', title: 'Group', width: 200, grow: true, rank: 0, cell: (row) => <GroupLink name={row.name} />, by: (row) => row.name },
  { key: 'status', title: 'Status', width: 112, rank: 1, line: true, cell: (row) => <StatusOf status={row.status} />, by: (row) => row.status },
  { key: 'lag_s', title: 'Lag, time', width: 112, right: true, rank: 2, cell: (row) => <Num short={duration(row.lag_s)} exact={seconds(row.lag_s)} />, by: (row) => row.lag_s },
  { key: 'lag', title: 'Lag, records', width: 120, right: true, rank: 3, line: true, cell: (row) => <Num short={count(row.lag)} exact={exact(row.lag, 'records')} />, by: (row) => row.lag },
];

function Partitions({ topic }: { topic: Topic }) {
  const { history } = topic;
  return (
    <>
      {history && history.times_ms.length > 1 && (
        <div class="charts">
          <Chart title="Records" unit="per second" times={history.times_ms} format={rate} lines={[{ label: 'Records', values: history.records_per_s }]} />
          {history.bytes_in_per_s?.some((value) => value != null) && (
            <Chart title="Growth" unit="bytes per second" times={history.times_ms} format={bytesRate} lines={[{ label: 'In', values: history.bytes_in_per_s }]} />
          )}
        </div>
      )}
      <div class="after-charts">
        <List label="Partitions" columns={PARTITION_COLUMNS} rows={topic.partition_list} keyOf={(row) => String(row.number)} sortName="sort" />
      </div>
    </>
  );
}

function Readers({ topic }: { topic: Topic }) {
  if (topic.group_list.length === 0) {
    return <Empty title="No group reads this topic" command={`barnabas consume ${shellWord(topic.name)} --group billing`} />;
  }
  return <List label="Groups" columns={READER_COLUMNS} rows={topic.group_list} keyOf={(row) => row.name} sortName="sort" />;
}

function Settings({ name }: { name: string }) {
  const loaded = useResource<{ items: ConfigRow[] }>(path('topics', name, 'configs'));
  return (
    <>
      <Waiting of={loaded} rows={10} />
      {loaded.data && <ConfigTable rows={loaded.data.items} topic={name} />}
    </>
  );
}

function Actions({ topic }: { topic: Topic }) {
  const warning = `All ${count(topic.records)} records and the offsets of ${integer(groupsOf(topic))} groups are lost.`;
  return (
    <>
      <ChangeButton onClick={() => showDialog(<Produce topic={topic.name} />)}>Produce</ChangeButton>
      <ChangeButton onClick={() => showDialog(<AddPartitions topic={topic} />)}>Add partitions</ChangeButton>
      <ChangeButton onClick={() => showDialog(<DeleteRecords topic={topic} />)}>Delete records</ChangeButton>
      <ChangeButton tone="danger" onClick={() => showDialog(<DeleteNamed what="topic" name={topic.name} warning={warning} back="/topics" />)}>
        Delete
      </ChangeButton>
    </>
  );
}

function summary(topic: Topic) {
  return [
    { label: 'Partitions', value: integer(topic.partitions), detail: `${integer(topic.replication_factor)} copies of each` },
    { label: 'Records', value: count(topic.records), title: exact(topic.records, 'records'), detail: 'at most' },
    { label: 'Size', value: bytes(topic.size_bytes), title: exact(topic.size_bytes, 'bytes'), detail: 'of the leaders’ logs' },
    { label: 'Written', value: rate(topic.records_per_s), title: exact(topic.records_per_s, 'records a second'), detail: bytesRate(topic.bytes_per_s) },
    { label: 'Groups', value: integer(groupsOf(topic)), detail: 'read it' },
  ];
}

export function TopicPage({ name, tab }: { name: string; tab: string }) {
  const loaded = useResource<Topic>(path('topics', name));
  const topic = loaded.data;
  const at = (which: string) => path('topics', name, which);
  return (
    <>
      <PageHead
        trail={{ to: '/topics', label: 'Topics' }}
        title={<><Name text={name} /><Copy text={name} label="Copy the name" /></>}
        state={topic && <>{topic.trouble ? <TroubleOf trouble={topic.trouble} /> : null}{topic.is_internal && <Chip tone="quiet">internal</Chip>}</>}
        actions={topic && <Actions topic={topic} />}
      />
      <Waiting of={loaded} rows={8} />
      {topic && <Figures items={summary(topic)} />}
      <Tabs
        label="Topic"
        current={at(tab)}
        tabs={[
          { to: at('messages'), label: 'Messages' },
          { to: at('partitions'), label: 'Partitions', count: topic && integer(topic.partitions) },
          { to: at('groups'), label: 'Groups', count: topic && integer(topic.group_list.length) },
          { to: at('settings'), label: 'Settings' },
        ]}
      />
      {tab === 'messages' && !(loaded.problem && !topic) && <Browser topic={name} partitions={topic?.partition_list.map((each) => each.number)} />}
      {tab === 'partitions' && topic && <Partitions topic={topic} />}
      {tab === 'groups' && topic && <Readers topic={topic} />}
      {tab === 'settings' && <Settings name={name} />}
    </>
  );
}
