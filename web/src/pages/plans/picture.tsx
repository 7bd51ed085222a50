/** A plan as a picture: how many bytes go from which broker to which, and what each holds before and after. */
import type { Move, Plan } from '../../api/types';
import { bytes, integer, plural } from '../../lib/format';

interface Flow {
  from: number;
  to: number;
  bytes: number;
  replicas: number;
}

const WIDTH = 560;
const NODE = 12;
const GAP = 16;
const HEIGHT_EACH = 64;

/** Each added replica is copied from somewhere; it is drawn from a broker that gives one up. */
export function flowsOf(changes: Move[]): Flow[] {
  const flows = new Map<string, Flow>();
  for (const { before, after, bytes: size } of changes) {
    const added = after.filter((id) => !before.includes(id));
    const removed = before.filter((id) => !after.includes(id));
    added.forEach((to, at) => {
      const from = removed[at] ?? before[0] ?? to;
      const flow = flows.get(`${from} ${to}`) ?? { from, to, bytes: 0, replicas: 0 };
      flow.bytes += (size ?? 0) / added.length;
      flow.replicas += 1;
      flows.set(`${from} ${to}`, flow);
    });
  }
  return [...flows.values()].sort((a, b) => b.bytes - a.bytes);
}

function weightOf(flow: Flow, byBytes: boolean): number {
  return byBytes ? flow.bytes : flow.replicas;
}

interface Side {
  id: number;
  y: number;
  height: number;
  used: number;
}

function sides(ids: number[], flows: Flow[], end: 'from' | 'to', scale: number, byBytes: boolean): Map<number, Side> {
  let y = GAP;
  const found = new Map<number, Side>();
  for (const id of ids) {
    const weight = flows.filter((flow) => flow[end] === id).reduce((sum, flow) => sum + weightOf(flow, byBytes), 0);
    const height = Math.max(4, weight * scale);
    found.set(id, { id, y, height, used: 0 });
    y += Math.max(height, 24) + GAP;
  }
  return found;
}

function ribbon(from: Side, to: Side, thickness: number): string {
  const [x1, x2, mid] = [96 + NODE, WIDTH - 96 - NODE, WIDTH / 2];
  const [y1, y2] = [from.y + from.used, to.y + to.used];
  from.used += thickness;
  to.used += thickness;
  return `M${x1},${y1} C${mid},${y1} ${mid},${y2} ${x2},${y2} L${x2},${y2 + thickness} C${mid},${y2 + thickness} ${mid},${y1 + thickness} ${x1},${y1 + thickness} Z`;
}

export function FlowPicture({ changes }: { changes: Move[] }) {
  const flows = flowsOf(changes);
  if (flows.length === 0) return null;
  const byBytes = flows.some((flow) => flow.bytes > 0);
  const total = flows.reduce((sum, flow) => sum + weightOf(flow, byBytes), 0);
  const givers = [...new Set(flows.map((flow) => flow.from))].sort((a, b) => a - b);
  const takers = [...new Set(flows.map((flow) => flow.to))].sort((a, b) => a - b);
  const scale = (HEIGHT_EACH * Math.max(givers.length, takers.length)) / total;
  const left = sides(givers, flows, 'from', scale, byBytes);
  const right = sides(takers, flows, 'to', scale, byBytes);
  const bottom = Math.max(...[...left.values(), ...right.values()].map((side) => side.y + Math.max(side.height, 24))) + GAP;
  const words = flows.map((flow) => `${plural(flow.replicas, 'replica')} (${bytes(flow.bytes)}) from broker ${flow.from} to broker ${flow.to}`);
  return (
    <figure class="flows">
      <figcaption>{byBytes ? 'Bytes to copy' : 'Replicas to move'}, from broker to broker</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${bottom}`} role="img" aria-label={words.join('; ')}>
        {flows.map((flow, at) => {
          const [from, to] = [left.get(flow.from), right.get(flow.to)];
          if (!from || !to) return null;
          return (
            <path key={`${flow.from} ${flow.to}`} class="flow" d={ribbon(from, to, Math.max(1, weightOf(flow, byBytes) * scale))}>
              <title>{words[at]}</title>
            </path>
          );
        })}
        {[...left.values()].map((side) => (
          <g key={side.id}>
            <rect class="node" x={96} y={side.y} width={NODE} height={side.height} rx="2" />
            <text x={88} y={side.y + side.height / 2 + 4} text-anchor="end">Broker {side.id}</text>
          </g>
        ))}
        {[...right.values()].map((side) => (
          <g key={side.id}>
            <rect class="node" x={WIDTH - 96 - NODE} y={side.y} width={NODE} height={side.height} rx="2" />
            <text x={WIDTH - 88} y={side.y + side.height / 2 + 4}>Broker {side.id}</text>
          </g>
        ))}
      </svg>
    </figure>
  );
}

function Pair({ before, after, most }: { before: number; after: number; most: number }) {
  const width = (value: number) => (most === 0 ? 0 : (value / most) * 120);
  return (
    <span class="pair">
      <svg width="120" height="14" viewBox="0 0 120 14" aria-hidden="true">
        <rect class="pair-before" width={width(before)} height="5" rx="2" />
        <rect class="pair-after" y="8" width={width(after)} height="5" rx="2" />
      </svg>
      {before === after ? integer(before) : `${integer(before)} → ${integer(after)}`}
    </span>
  );
}

export function BrokerTotals({ brokers }: { brokers: Plan['brokers'] }) {
  const rows = Object.entries(brokers);
  const most = (name: 'replicas' | 'leaders') => Math.max(...rows.map(([, row]) => Math.max(row[`${name}_before`], row[`${name}_after`])), 0);
  const [replicas, leaders] = [most('replicas'), most('leaders')];
  return (
    <table class="plain totals">
      <thead>
        <tr>
          <th scope="col">Broker</th>
          <th scope="col">Replicas, before and after</th>
          <th scope="col">Leaders, before and after</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([id, row]) => (
          <tr key={id}>
            <td>{id}</td>
            <td><Pair before={row.replicas_before} after={row.replicas_after} most={replicas} /></td>
            <td><Pair before={row.leaders_before} after={row.leaders_after} most={leaders} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
