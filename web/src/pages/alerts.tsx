/** What is wrong now, what may become so, and which rules are quiet. */
import { useResource } from '../api/resource';
import type { Alert, Alerts as Answer, Maybe } from '../api/types';
import { now } from '../lib/clock';
import { duration, utc } from '../lib/format';
import { href, path, query } from '../lib/place';
import { Choices, PageHead } from '../parts/controls';
import { Empty, ProblemNote, Waiting } from '../parts/feedback';
import { Chip, State, type Tone } from '../parts/text';

const TONES: Record<Alert['severity'], Tone> = { critical: 'critical', warning: 'warning', info: 'info' };
const ORDER: Alert['severity'][] = ['critical', 'warning', 'info'];

function since(ms: Maybe<number>) {
  if (ms === null) return null;
  const seconds = Math.max(0, Math.floor((now.value - ms) / 1000));
  return <span title={utc(ms)}>for {duration(seconds)}</span>;
}

/** The page that the labels of an alert point to. */
function Subject({ labels }: { labels: Record<string, string> }) {
  const { consumergroup, topic, broker } = labels;
  if (consumergroup !== undefined) return <a href={href(path('groups', consumergroup))}>Show the group</a>;
  if (topic !== undefined) return <a href={href(path('topics', topic, 'partitions'))}>Show the topic</a>;
  if (broker !== undefined && /^\d+$/.test(broker)) return <a href={href(path('brokers', broker))}>Show the broker</a>;
  return null;
}

/** Only web addresses become links; the shipped rules name a file of the documentation. */
function Runbook({ runbook }: { runbook: Maybe<string> }) {
  if (!runbook) return null;
  if (/^https?:\/\//.test(runbook)) return <a href={runbook} target="_blank" rel="noopener noreferrer">What to do</a>;
  return <span class="quiet-line">What to do: <code>{runbook}</code></span>;
}

function Card({ alert }: { alert: Alert }) {
  const tone = alert.state === 'pending' ? 'quiet' : TONES[alert.severity];
  return (
    <li class={`alert ${tone}`}>
      <header>
        <Chip tone={tone}>{alert.state === 'pending' ? `${alert.severity}, pending` : alert.severity}</Chip>
        <h2>{alert.name}</h2>
        {since(alert.since_ms)}
      </header>
      {alert.summary && <p>{alert.summary}</p>}
      <footer>
        <Subject labels={alert.labels} />
        <Runbook runbook={alert.runbook} />
        {alert.source && alert.source !== 'console' && <span class="quiet-line">from {alert.source}</span>}
      </footer>
    </li>
  );
}

function Quiet({ alerts }: { alerts: Alert[] }) {
  return (
    <details class="quiet-rules">
      <summary>{alerts.length} rules are quiet</summary>
      <ul>
        {alerts.map((alert) => (
          <li key={alert.name}>
            <State tone="good" word={alert.name} />
          </li>
        ))}
      </ul>
    </details>
  );
}

export function Alerts() {
  const loaded = useResource<Answer>('/alerts');
  const items = loaded.data?.items ?? [];
  const severity = query.value.get('severity') ?? '';
  const loud = items
    .filter(({ state }) => state !== 'ok')
    .sort((a, b) => Number(a.state !== 'firing') - Number(b.state !== 'firing') || ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  const shown = loud.filter((alert) => severity === '' || alert.severity === severity);
  const counts = (which: string) => loud.filter((alert) => alert.severity === which).length;
  return (
    <>
      <PageHead title="Alerts" />
      <Waiting of={loaded} rows={5} />
      {loaded.data && (
        <>
          {loaded.data.failure && <ProblemNote text={loaded.data.failure} />}
          <div class="toolbar">
            <Choices label="Severity" name="severity" choices={[{ value: '', label: 'all', count: loud.length }, ...ORDER.map((value) => ({ value, label: value, count: counts(value) }))]} />
          </div>
          {shown.length === 0 && <Empty title={severity ? `No ${severity} alert` : 'Nothing is wrong'} />}
          <ul class="alerts">
            {shown.map((alert) => (
              <Card key={`${alert.name} ${JSON.stringify(alert.labels)}`} alert={alert} />
            ))}
          </ul>
          <Quiet alerts={items.filter(({ state }) => state === 'ok')} />
        </>
      )}
    </>
  );
}
