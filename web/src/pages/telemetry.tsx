/** The GPU report of a lake, in a frame of its own. */
import { useResource } from '../api/resource';
import type { Telemetry } from '../api/types';
import { count, exact, plural, time } from '../lib/format';
import { href } from '../lib/place';
import { Figures, PageHead } from '../parts/controls';
import { Empty, ProblemNote, Waiting } from '../parts/feedback';

function money(value: number | null, currency: string | null): string {
  if (value === null) return '–';
  const text = value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return currency ? `${text} ${currency}` : text;
}

export function TelemetryPage() {
  const loaded = useResource<Telemetry>('/telemetry');
  const { data, problem } = loaded;
  return (
    <>
      <PageHead title="Telemetry" actions={data && <a class="button" href={href('/api/telemetry/report')} target="_blank" rel="noopener">Open the report alone</a>} />
      {problem?.status === 404 ? (
        <Empty title="This console knows no lake" command="barnabas console --lake /data/lake">
          {problem.message}
        </Empty>
      ) : (
        <Waiting of={loaded} />
      )}
      {data && (
        <>
          {data.failure && <ProblemNote text={data.failure} />}
          <Figures
            items={[
              { label: 'GPUs', value: count(data.summary.gpus), title: exact(data.summary.gpus), detail: data.lake },
              { label: 'Idle', value: data.summary.idle_hours === null ? '–' : `${count(data.summary.idle_hours)} h`, title: exact(data.summary.idle_hours, 'hours'), detail: 'of card time' },
              { label: 'Spent on idleness', value: money(data.summary.waste, data.summary.currency), detail: 'energy and cards' },
              { label: 'Findings', value: count(data.findings.length), detail: `as of ${time(data.updated_ms).slice(0, 19)}` },
            ]}
          />
          <iframe class="report" title={`GPU report, ${plural(data.findings.length, 'finding')}`} src={href('/api/telemetry/report')} sandbox="allow-scripts allow-popups" />
        </>
      )}
    </>
  );
}
