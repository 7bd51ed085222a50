/** The columns of the list of brokers. */
import type { BrokerRow } from '../api/types';
import { bytes, bytesRate, exact, integer, percent } from '../lib/format';
import { href, path } from '../lib/place';
import type { Column } from '../parts/table';
import { BrokerState, Num } from '../parts/text';
import { Bar } from '../parts/trend';

export function diskTone(used: number | null): 'critical' | 'warning' | undefined {
  if (used === null) return undefined;
  return used > 0.95 ? 'critical' : used > 0.8 ? 'warning' : undefined;
}

export function busyTone(busy: number | null): 'warning' | undefined {
  return busy !== null && busy > 0.9 ? 'warning' : undefined;
}

function BrokerName({ row }: { row: BrokerRow }) {
  return (
    <a class="row-link" href={href(path('brokers', row.id))}>
      Broker {row.id}
      {row.is_controller && <span class="tag">controller</span>}
    </a>
  );
}

function disk(row: BrokerRow) {
  const title = `${percent(row.disk_used_ratio)} used, ${bytes(row.disk_free_bytes)} free`;
  return <Bar ratio={row.disk_used_ratio} text={percent(row.disk_used_ratio)} title={title} tone={diskTone(row.disk_used_ratio)} />;
}

function busy(row: BrokerRow) {
  const title = 'The share of time in which the event loop works';
  return <Bar ratio={row.loop_busy_ratio} text={percent(row.loop_busy_ratio)} title={title} tone={busyTone(row.loop_busy_ratio)} />;
}

export const BROKER_COLUMNS: Column<BrokerRow>[] = [
  { key: 'id', title: 'Broker', width: 168, grow: true, rank: 0, cell: (row) => <BrokerName row={row} />, by: (row) => row.id },
  { key: 'state', title: 'State', width: 112, rank: 1, line: true, cell: (row) => <BrokerState state={row.state} />, by: (row) => row.state },
  { key: 'loop_busy_ratio', title: 'Loop busy', width: 128, rank: 3, cell: busy, by: (row) => row.loop_busy_ratio },
  { key: 'disk_used_ratio', title: 'Disk used', width: 128, rank: 2, cell: disk, by: (row) => row.disk_used_ratio },
  { key: 'bytes_in_per_s', title: 'In', width: 96, right: true, rank: 4, line: true, cell: (row) => <Num short={bytesRate(row.bytes_in_per_s)} exact={exact(row.bytes_in_per_s, 'bytes a second')} />, by: (row) => row.bytes_in_per_s },
  { key: 'bytes_out_per_s', title: 'Out', width: 96, right: true, rank: 5, line: true, cell: (row) => <Num short={bytesRate(row.bytes_out_per_s)} exact={exact(row.bytes_out_per_s, 'bytes a second')} />, by: (row) => row.bytes_out_per_s },
  { key: 'leaders', title: 'Leaders', hint: 'Partitions that this broker leads', width: 88, right: true, rank: 6, line: true, cell: (row) => <Num short={integer(row.leaders)} exact={exact(row.leaders, 'partitions')} />, by: (row) => row.leaders },
  { key: 'in_sync', title: 'In sync', hint: 'Replicas in sync, of all replicas here', width: 112, right: true, rank: 7, cell: (row) => `${integer(row.in_sync)} of ${integer(row.replicas)}`, by: (row) => row.in_sync },
  { key: 'connections', title: 'Connections', width: 112, right: true, rank: 8, cell: (row) => <Num short={integer(row.connections)} exact={exact(row.connections)} />, by: (row) => row.connections },
  { key: 'version', title: 'Version', width: 88, rank: 10, cell: (row) => row.version ?? '–', by: (row) => row.version },
  { key: 'address', title: 'Address', width: 176, rank: 9, cell: (row) => <span class="mono">{row.address ?? '–'}</span>, by: (row) => row.address },
];
