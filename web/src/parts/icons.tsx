/** Small line icons, drawn on 16 by 16. They repeat a word beside them, so readers of the screen skip them. */

const PATHS = {
  overview: 'M2 9.5l3-4 3 3 3-5 3 6M2 13.5h12',
  topics: 'M2.5 4h11M2.5 8h11M2.5 12h11',
  messages: 'M2.5 3.5h11v7.5h-6l-3 2.5v-2.5h-2z',
  groups: 'M6 7.5a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM2 13c.3-2.4 1.9-3.7 4-3.7s3.700 1.300 4 3.700M10.500 3.300a2.200 2.200 0 0 1 0 4.100M11.700 9.500c1.400.500 2.200 1.700 2.400 3.500',
  transactions: 'M2.500 5.500h10l-2.500-2.500M13.500 10.500h-10l2.500 2.500',
  brokers: 'M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5h.01M5 11h.01',
  heatmap: 'M2.500 2.500h4.500v4.500h-4.500zM9 2.500h4.500v4.500h-4.500zM2.500 9h4.500v4.500h-4.500zM9 9h4.500v4.500h-4.500z',
  plans: 'M3.500 3v6a2 2 0 0 0 2 2h7M10 8.500l2.500 2.500-2.500 2.500M3.500 6h6',
  streams: 'M2 5c2-2 4-2 6 0s4 2 6 0M2 10.500c2-2 4-2 6 0s4 2 6 0',
  telemetry: 'M4 4h8v8h-8zM6.500 1.500v2.500M9.500 1.500v2.500M6.500 12v2.500M9.500 12v2.500M1.500 6.500h2.500M1.500 9.500h2.500M12 6.500h2.500M12 9.500h2.500',
  alerts: 'M4 11v-4a4 4 0 0 1 8 0v4l1.200 1.500h-10.400zM6.700 14.200h2.600',
  menu: 'M2 4h12M2 8h12M2 12h12',
  search: 'M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM10.300 10.300l3.700 3.700',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.500M8 13.500v1.500M1 8h1.500M13.500 8h1.500M3 3l1.100 1.100M11.900 11.900l1.100 1.100M13 3l-1.100 1.100M4.100 11.900l-1.100 1.100',
  moon: 'M13.500 9.700a5.800 5.800 0 1 1-7.200-7.200 4.800 4.800 0 0 0 7.200 7.200z',
  system: 'M2 3h12v8h-12zM5.500 13.500h5',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
  close: 'M3.500 3.500l9 9M12.500 3.500l-9 9',
  play: 'M5 3l8 5-8 5z',
  pause: 'M5 3v10M11 3v10',
  stop: 'M4 4h8v8h-8z',
  download: 'M8 2v8M4.500 7l3.500 3.500 3.500-3.500M2.500 13.500h11',
  plus: 'M8 3v10M3 8h10',
  check: 'M3 8.500l3.500 3.500 6.500-8',
  arrow: 'M3 8h10M9.500 4.500l3.500 3.500-3.500 3.500',
  down: 'M4 6l4 4 4-4',
  keys: 'M1.500 4h13v8h-13zM4 6.500h.01M7 6.500h.01M10 6.500h.01M12 6.500h.01M5 9.500h6',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
