/** Lines over time. All charts of a page share one hover; a unit stands in each title. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { session } from '../api/session';
import { clock, day, time } from '../lib/format';
import { isDark, token } from '../lib/theme';

export interface Line {
  label: string;
  values: (number | null)[] | undefined;
}

interface ChartProps {
  title: string;
  unit: string;
  times: number[];
  lines: Line[];
  format: (value: number | null | undefined) => string;
  /** The values are seconds: the axis has steps of seconds, minutes and hours. */
  isTime?: boolean;
  height?: number;
  /** The values come from the brokers' /metrics. */
  ofMetrics?: boolean;
}

const SHARED = uPlot.sync('page');
const FONT = '11px system-ui, sans-serif';
const GAP_STEPS = 3;

const TIME_STEPS = [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400];

const MINUTE = 60;
const DAY = 86_400;
const CLOCK_STEPS = TIME_STEPS.filter((step) => step >= 1).concat([2, 7, 14, 30, 60, 120, 365].map((days) => days * DAY));

/** The times of an axis: with seconds where steps are shorter than a minute, days where they are whole days. */
function clockTicks(seconds: number[], step: number): string[] {
  return seconds.map((each) => {
    const ms = each * 1000;
    if (step >= DAY) return day(ms).slice(5);
    return step < MINUTE ? clock(ms) : clock(ms).slice(0, 5);
  });
}

function axis(format: (value: number) => string, size: number): uPlot.Axis {
  return {
    stroke: token('faint'),
    font: FONT,
    size,
    gap: 4,
    grid: { stroke: token('rule'), width: 1 },
    ticks: { show: false },
    values: (_, splits) => splits.map(format),
  };
}

/** Two points that are far apart are not joined: the console was away. */
function withGaps(times: number[], lines: Line[]): uPlot.AlignedData {
  const seconds: number[] = [];
  const columns: (number | null)[][] = lines.map(() => []);
  const step = times.length > 1 ? ((times.at(-1) ?? 0) - (times[0] ?? 0)) / (times.length - 1) : 0;
  times.forEach((at, index) => {
    const before = times[index - 1];
    if (before !== undefined && step > 0 && at - before > step * GAP_STEPS) {
      seconds.push((before + step) / 1000);
      for (const column of columns) column.push(null);
    }
    seconds.push(at / 1000);
    columns.forEach((column, which) => column.push(lines[which]?.values?.[index] ?? null));
  });
  return [seconds, ...columns] as uPlot.AlignedData;
}

function legendUpdate(legend: HTMLElement, props: ChartProps): (plot: uPlot) => void {
  const cells = legend.querySelectorAll<HTMLElement>('[data-value]');
  const at = legend.querySelector<HTMLElement>('[data-time]');
  return (plot) => {
    const index = plot.cursor.idx;
    props.lines.forEach((_, which) => {
      const column = plot.data[which + 1];
      const value = column?.[index ?? column.length - 1];
      const cell = cells[which];
      if (cell) cell.textContent = props.format(value);
    });
    const second = index == null ? undefined : plot.data[0][index];
    if (at) at.textContent = second === undefined ? '' : clock(second * 1000);
  };
}

function options(width: number, props: ChartProps, update: (plot: uPlot) => void): uPlot.Options {
  // "per second" stands in the title.
  const short = (value: number) => props.format(value).replace('/s', '').replace(/\.0+(?=\D|$)/, '');
  return {
    width,
    height: props.height ?? 140,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: SHARED.key, setSeries: false },
      drag: { x: false, y: false },
      points: { size: 6 },
      y: false,
    },
    scales: {
      x: { time: true },
      // Nothing but zeros: an axis to 1, since one to 0 would say 0 at each line.
      y: { range: (_, low, high) => [Math.min(0, low ?? 0), ((high ?? 0) > 0 ? (high ?? 0) : 1) * 1.1] },
    },
    axes: [
      { ...axis(String, 22), space: 72, incrs: CLOCK_STEPS, values: (_, splits, __, ___, step) => clockTicks(splits, step) },
      { ...axis(short, 56), space: 32, ...(props.isTime ? { incrs: TIME_STEPS } : {}) },
    ],
    series: [
      {},
      ...props.lines.map((line, which) => ({
        label: line.label,
        stroke: token(`line-${which + 1}`),
        width: 1.5,
        ...(props.lines.length === 1 ? { fill: token('line-wash') } : {}),
        points: { show: false },
        spanGaps: false,
      })),
    ],
    hooks: { setCursor: [update], setData: [update], ready: [update] },
  };
}

export function Chart(props: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const dark = isDark.value;
  const isKnown = props.lines.some((line) => line.values?.some((value) => value != null));
  const labels = props.lines.map((line) => line.label).join('\n');

  useEffect(() => {
    const element = frame.current;
    if (!element || !legend.current) return;
    const update = legendUpdate(legend.current, props);
    const made = new uPlot(options(element.clientWidth, props, update), withGaps(props.times, props.lines), element);
    plot.current = made;
    const observer = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: props.height ?? 140 }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [dark, labels, props.height, isKnown]);

  useEffect(() => plot.current?.setData(withGaps(props.times, props.lines)), [props.times]);

  const last = props.times.at(-1);
  const latest = props.lines
    .map((line) => `${line.label} ${props.format(line.values?.at(-1))}`)
    .join(', ');
  return (
    <figure class="chart">
      <figcaption ref={legend}>
        <b>
          {props.title} <span class="unit">{props.unit}</span>
        </b>
        <span class="legend">
          <span data-time class="legend-time" />
          {props.lines.map((line, which) => (
            <span key={line.label} class="legend-line">
              <i class={`swatch line-${which + 1}`} />
              {props.lines.length > 1 && line.label} <span data-value class="legend-value" />
            </span>
          ))}
        </span>
      </figcaption>
      {!isKnown && <p class="chart-unknown">{props.ofMetrics && !session.value?.features.metrics ? 'Unknown without the brokers’ metrics: start the console with --metrics.' : 'No values yet.'}</p>}
      {isKnown && <div class="chart-area" ref={frame} role="img" aria-label={`${props.title} in ${props.unit}. At ${time(last)}: ${latest}`} />}
    </figure>
  );
}
