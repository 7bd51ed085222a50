/** The columns of lists of topics. */
import type { TopicRow } from '../api/types';
import { bytes, bytesRate, count, exact, integer, rate } from '../lib/format';
import { href, path } from '../lib/place';
import type { Column } from '../parts/table';
import { Name, Num, TroubleOf } from '../parts/text';

export function TopicLink({ name }: { name: string }) {
  return (
    <a class="row-link" href={href(path('topics', name))}>
      <Name text={name} />
    </a>
  );
}

/** Versions of the API answered either the groups' names or their number. */
export function groupsOf(row: TopicRow): number {
  return Array.isArray(row.groups) ? row.groups.length : row.groups;
}

export const TOPIC_COLUMNS: Column<TopicRow>[] = [
  { key: 'name', title: 'Topic', width: 200, grow: true, rank: 0, cell: (row) => <TopicLink name={row.name} />, by: (row) => row.name },
  { key: 'trouble', title: 'State', width: 152, rank: 1, line: true, cell: (row) => <TroubleOf trouble={row.trouble} />, by: (row) => row.trouble ?? '' },
  { key: 'partitions', title: 'Partitions', width: 96, right: true, rank: 4, line: true, cell: (row) => integer(row.partitions), by: (row) => row.partitions },
  { key: 'replication_factor', title: 'Copies', hint: 'The replication factor', width: 80, right: true, rank: 8, cell: (row) => integer(row.replication_factor), by: (row) => row.replication_factor },
  { key: 'records', title: 'Records', hint: 'End less start offsets: an upper bound where topics are compacted', width: 96, right: true, rank: 5, cell: (row) => <Num short={count(row.records)} exact={exact(row.records, 'records')} />, by: (row) => row.records },
  { key: 'size_bytes', title: 'Size', hint: 'Of the leaders’ logs', width: 96, right: true, rank: 3, line: true, cell: (row) => <Num short={bytes(row.size_bytes)} exact={exact(row.size_bytes, 'bytes')} />, by: (row) => row.size_bytes },
  { key: 'records_per_s', title: 'Records/s', width: 104, right: true, rank: 2, line: true, cell: (row) => <Num short={rate(row.records_per_s)} exact={exact(row.records_per_s, 'records a second')} />, by: (row) => row.records_per_s },
  { key: 'bytes_per_s', title: 'Bytes/s', width: 104, right: true, rank: 6, cell: (row) => <Num short={bytesRate(row.bytes_per_s)} exact={exact(row.bytes_per_s, 'bytes a second')} />, by: (row) => row.bytes_per_s },
  { key: 'groups', title: 'Groups', width: 80, right: true, rank: 7, cell: (row) => <Num short={integer(groupsOf(row))} exact={exact(groupsOf(row), 'groups')} />, by: groupsOf },
];
