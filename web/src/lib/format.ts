/** How numbers, sizes, durations and times are written. A null is unknown and shows as a dash. */

export const UNKNOWN = '–';
export type Number_ = number | null | undefined;

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const exactFormat = new Intl.NumberFormat('en-US', { maximumFractionDigits: 3 });

/** Three significant digits at most: 9.87, 98.7, 987. */
function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

function trim(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

function scaled(value: number, units: readonly string[], gap: string): string {
  let rest = value;
  let step = 0;
  while (Math.abs(rest) >= 999.5 && step < units.length - 1) {
    rest /= 1000;
    step += 1;
  }
  const unit = units[step] ?? '';
  const text = step === 0 ? trim(digits(rest)) : digits(rest);
  return unit === '' ? text : `${text}${gap}${unit}`;
}

/** A count: 9,999 in full, then 12.3 k. */
export function count(value: Number_): string {
  if (value == null) return UNKNOWN;
  if (Number.isInteger(value) && Math.abs(value) < 10_000) return whole.format(value);
  return scaled(value, ['', 'k', 'M', 'G', 'T', 'P'], ' ');
}

/** The exact number, for titles. */
export function exact(value: Number_, unit = ''): string {
  if (value == null) return 'unknown';
  return exactFormat.format(value) + (unit === '' ? '' : ` ${unit}`);
}

export function integer(value: Number_): string {
  return value == null ? UNKNOWN : whole.format(value);
}

export function bytes(value: Number_): string {
  return value == null ? UNKNOWN : scaled(value, ['B', 'KB', 'MB', 'GB', 'TB', 'PB'], ' ');
}

export function bytesRate(value: Number_): string {
  return value == null ? UNKNOWN : `${bytes(value)}/s`;
}

export function rate(value: Number_): string {
  return value == null ? UNKNOWN : `${scaled(value, ['', 'k', 'M', 'G'], ' ')}/s`;
}

export function percent(ratio: Number_): string {
  if (ratio == null) return UNKNOWN;
  const value = ratio * 100;
  return `${value > 0 && value < 1 ? '<1' : value.toFixed(0)} %`;
}

/** A duration in seconds: 4.1 ms, 12 s, 4m 12s, 2h 5m, 19 d. */
export function duration(seconds: Number_): string {
  if (seconds == null) return UNKNOWN;
  if (seconds < 0) return `-${duration(-seconds)}`;
  if (seconds === 0) return '0 s';
  if (seconds < 1) return `${trim(digits(seconds * 1000))} ms`;
  if (seconds < 10) return `${trim(seconds.toFixed(1))} s`;
  if (seconds < 59.5) return `${seconds.toFixed(0)} s`;
  return longDuration(Math.round(seconds));
}

function longDuration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return joined(minutes, 'm', seconds % 60, 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return joined(hours, 'h', minutes % 60, 'm');
  const days = Math.round(hours / 24);
  return days < 730 ? `${whole.format(days)} d` : `${whole.format(Math.round(days / 365))} y`;
}

function joined(first: number, unit: string, second: number, rest: string): string {
  return second === 0 ? `${first}${unit}` : `${first}${unit} ${second}${rest}`;
}

/** An estimate: "never" if the lag does not fall. */
export function eta(value: number | 'never' | null | undefined): string {
  return value === 'never' ? 'never' : duration(value);
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

export function clock(ms: Number_): string {
  if (ms == null) return UNKNOWN;
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function day(ms: number): string {
  const date = new Date(ms);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** A time of the local calendar with milliseconds. */
export function time(ms: Number_): string {
  if (ms == null || ms < 0) return UNKNOWN;
  return `${day(ms)} ${clock(ms)}.${String(Math.floor(ms) % 1000).padStart(3, '0')}`;
}

/** The exact time in UTC, for titles. */
export function utc(ms: Number_): string {
  return ms == null || ms < 0 || ms > 8.64e15 ? 'unknown' : `${new Date(ms).toISOString()} (UTC)`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${integer(value)} ${value === 1 ? one : many}`;
}

/** A value as one word of a shell, since commands are copied and run. */
export function shellWord(text: string): string {
  return /^[\w.:@+][\w.:@+-]*$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}
