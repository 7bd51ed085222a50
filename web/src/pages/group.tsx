/** One group: its lag in records and seconds, its partitions, its members. */
import { useResource } from '../api/resource';
import type { Group, GroupPartition, Member } from '../api/types';
import { count, duration, eta, exact, integer, plural, rate } from '../lib/format';
import { href, path } from '../lib/place';
import { Chart } from '../parts/chart';
import { ChangeButton, type FigureProps, Figures, PageHead, Tabs } from '../parts/controls';
import { showDialog } from '../parts/dialog';
import { Empty, Waiting } from '../parts/feedback';
import { type Column, List } from '../parts/table';
import { Chip, Copy, Name, Num, StatusOf } from '../parts/text';
import { seconds, stateWords } from './group_columns';
import { ResetOffsets } from './reset';
import { DeleteNamed } from './topic/changes';

const MARGIN_SHORT_S = 3600;

const PARTITIONS: Column<GroupPartition>[] = [
  { key: 'partition', title: 'Partition', width: 184, grow: true, rank: 0, cell: (row) => <a class="row-link" href={href(path('topics', row.topic, 'partitions'))}><Name text={`${row.topic}-${row.partition}`} /></a>, by: (row) => `${row.topic}-${row.partition}` },
  { key: 'status', title: 'Status', width: 104, rank: 1, line: true, cell: (row) => <StatusOf status={row.status} />, by: (row) => row.status },
  { key: 'lag_s', title: 'Lag, time', hint: 'How long ago the oldest record that waits was written', width: 96, right: true, rank: 2, line: true, cell: (row) => <Num short={duration(row.lag_s)} exact={seconds(row.lag_s)} />, by: (row) => row.lag_s },
  { key: 'lag', title: 'Lag, records', width: 112, right: true, rank: 3, line: true, cell: (row) => <Num short={count(row.lag)} exact={exact(row.lag, 'records')} />, by: (row) => row.lag },
  { key: 'read_per_s', title: 'Reads', width: 96, right: true, rank: 5, cell: (row) => <Num short={rate(row.read_per_s)} exact={exact(row.read_per_s, 'records a second')} />, by: (row) => row.read_per_s },
  { key: 'committed', title: 'Committed', hint: 'The committed offset', width: 120, right: true, rank: 6, line: true, cell: (row) => <span class="mono">{integer(row.committed)}</span>, by: (row) => row.committed },
  { key: 'end', title: 'End', hint: 'The high watermark', width: 120, right: true, rank: 7, line: true, cell: (row) => <span class="mono">{integer(row.end)}</span>, by: (row) => row.end },
  { key: 'retention_margin_s', title: 'Deleted in', hint: 'When retention reaches the committed offset', width: 104, right: true, rank: 8, cell: (row) => <Num short={duration(row.retention_margin_s)} exact={seconds(row.retention_margin_s)} />, by: (row) => row.retention_margin_s },
  { key: 'lost_records', title: 'Lost', hint: 'Records deleted before the group read them', width: 80, right: true, rank: 9, cell: (row) => (row.lost_records > 0 ? <span class="state critical">{count(row.lost_records)}</span> : <span class="zero">0</span>), by: (row) => row.lost_records },
  { key: 'client_id', title: 'Client', width: 160, rank: 4, cell: (row) => <span title={row.member_id ?? undefined}>{row.client_id ?? '–'}</span>, by: (row) => row.client_id },
];

function placesOf(member: Member): string {
  return member.partitions.map((each) => `${each.topic}-${each.partition}`).join(', ');
}

const MEMBERS: Column<Member>[] = [
  { key: 'member_id', title: 'Member', width: 200, grow: true, rank: 0, cell: (row) => <span class="mono"><Name text={row.member_id} /></span>, by: (row) => row.member_id },
  { key: 'client_id', title: 'Client', width: 160, rank: 1, cell: (row) => row.client_id, by: (row) => row.client_id },
  { key: 'host', title: 'Host', width: 128, rank: 2, line: true, cell: (row) => <span class="mono">{row.host}</span>, by: (row) => row.host },
  { key: 'instance_id', title: 'Instance', hint: 'group.instance.id of a static member', width: 136, rank: 4, cell: (row) => row.instance_id ?? '–', by: (row) => row.instance_id },
  { key: 'count', title: 'Partitions', width: 96, right: true, rank: 3, cell: (row) => <Num short={integer(row.partitions.length)} exact={placesOf(row)} />, by: (row) => row.partitions.length },
  { key: 'partitions', title: 'Which', width: 280, rank: 5, fixed: true, cell: (row) => <span title={placesOf(row)}>{placesOf(row)}</span> },
];

function figures(group: Group): FigureProps[] {
  const margin = group.retention_margin_s;
  return [
    { label: 'Lag, time', value: duration(group.lag_s), title: seconds(group.lag_s), detail: 'of its worst partition' },
    { label: 'Lag, records', value: count(group.lag), title: exact(group.lag, 'records'), detail: 'in all partitions' },
    { label: 'Caught up in', value: eta(group.eta_s), title: group.eta_s === 'never' ? 'The lag does not fall' : seconds(group.eta_s), detail: 'at the present speed', tone: group.eta_s === 'never' ? 'warning' : undefined },
    { label: 'Reads', value: rate(group.read_per_s), title: exact(group.read_per_s, 'records a second'), detail: 'records' },
    { label: 'Deleted in', value: duration(margin), title: seconds(margin), detail: 'until retention eats it', tone: margin !== null && margin < MARGIN_SHORT_S ? 'critical' : undefined },
    { label: 'Members', value: integer(group.members), detail: group.assignor || group.type || '' },
  ];
}

function Charts({ history }: { history: Group['history'] }) {
  if (!history || history.times_ms.length < 2) return null;
  return (
    <div class="charts">
      <Chart title="Lag" unit="time" isTime times={history.times_ms} format={duration} lines={[{ label: 'Lag', values: history.lag_s }]} />
      <Chart title="Lag" unit="records" times={history.times_ms} format={count} lines={[{ label: 'Lag', values: history.lag }]} />
    </div>
  );
}

function Tables({ group, tab }: { group: Group; tab: string }) {
  if (tab === 'members') {
    return group.member_list.length === 0 ? (
      <Empty title="No member is in this group">Its offsets stay until they expire.</Empty>
    ) : (
      <List label="Members" columns={MEMBERS} rows={group.member_list} keyOf={(row) => row.member_id} sortName="sort" />
    );
  }
  return group.partition_list.length === 0 ? (
    <Empty title="This group has no offsets yet" />
  ) : (
    <List label="Partitions" columns={PARTITIONS} rows={group.partition_list} keyOf={(row) => `${row.topic}-${row.partition}`} sortName="sort" />
  );
}

function Actions({ group }: { group: Group }) {
  const busy = (group.members ?? 0) > 0 ? `The group has ${plural(group.members ?? 0, 'member')}. Stop them first.` : null;
  const warning = 'Its committed offsets are lost. Consumers of this name begin where auto.offset.reset says.';
  return (
    <>
      <ChangeButton off={busy} onClick={() => showDialog(<ResetOffsets group={group} />)}>Reset offsets</ChangeButton>
      <ChangeButton tone="danger" off={busy} onClick={() => showDialog(<DeleteNamed what="group" name={group.name} warning={warning} back="/groups" />)}>
        Delete
      </ChangeButton>
    </>
  );
}

export function GroupPage({ name, tab }: { name: string; tab: string }) {
  const loaded = useResource<Group>(path('groups', name));
  const group = loaded.data;
  const at = (which: string) => path('groups', name, which);
  return (
    <>
      <PageHead
        trail={{ to: '/groups', label: 'Groups' }}
        title={<><Name text={name} /><Copy text={name} label="Copy the name" /></>}
        state={group && <><StatusOf status={group.status} /><Chip tone="quiet">{stateWords(group.state)}</Chip></>}
        actions={group && <Actions group={group} />}
      />
      <Waiting of={loaded} rows={8} />
      {group && (
        <>
          <Figures items={figures(group)} />
          <Charts history={group.history} />
          <Tabs
            label="Group"
            current={at(tab)}
            tabs={[
              { to: at('partitions'), label: 'Partitions', count: integer(group.partition_list.length) },
              { to: at('members'), label: 'Members', count: integer(group.member_list.length) },
            ]}
          />
          <Tables group={group} tab={tab} />
        </>
      )}
    </>
  );
}
