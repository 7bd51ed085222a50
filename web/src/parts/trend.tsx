/** A small line without axes, beside its number in a table. */
import { count } from '../lib/format';

const WIDTH = 72;
const HEIGHT = 20;

function points(values: number[]): string {
  const most = Math.max(...values, 1);
  const step = (WIDTH - 2) / Math.max(1, values.length - 1);
  return values
    .map((value, at) => `${(1 + at * step).toFixed(1)},${(HEIGHT - 2 - (value / most) * (HEIGHT - 4)).toFixed(1)}`)
    .join(' ');
}

export function Trend({ values, what }: { values: number[]; what: string }) {
  const first = values[0];
  const last = values.at(-1);
  if (first === undefined || last === undefined || values.length < 2) {
    return <span class="unknown">–<span class="unseen">unknown</span></span>;
  }
  const text = `${what} went from ${count(first)} to ${count(last)}`;
  return (
    <svg class="trend" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} role="img" aria-label={text}>
      <title>{text}</title>
      <polyline points={points(values)} />
    </svg>
  );
}

/** A share of a whole as a bar with its number. */
export function Bar({ ratio, text, title, tone }: { ratio: number | null; text: string; title: string; tone?: string }) {
  if (ratio === null) return <span class="unknown" title="unknown">–<span class="unseen">unknown</span></span>;
  return (
    <span class={`share ${tone ?? ''}`} title={title}>
      <svg width="48" height="6" viewBox="0 0 48 6" aria-hidden="true" preserveAspectRatio="none">
        <rect class="share-all" width="48" height="6" rx="3" />
        <rect class="share-part" width={Math.max(ratio > 0 ? 2 : 0, Math.min(1, ratio) * 48)} height="6" rx="3" />
      </svg>
      {text}
    </span>
  );
}
