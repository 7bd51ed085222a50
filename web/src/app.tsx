/** Chooses the page by the path. */
import { useEffect } from 'preact/hooks';
import { closeEvents, openEvents } from './api/events';
import { loadSession, needsLogin, session, sessionProblem } from './api/session';
import { helpOpen, paletteOpen } from './lib/keys';
import { place, segments } from './lib/place';
import { Alerts } from './pages/alerts';
import { BrokerPage } from './pages/broker';
import { Brokers } from './pages/brokers';
import { GroupPage } from './pages/group';
import { Groups } from './pages/groups';
import { HeatMapPage } from './pages/heatmap';
import { Login } from './pages/login';
import { Messages } from './pages/messages/messages';
import { OverviewPage } from './pages/overview';
import { Plans } from './pages/plans/plans';
import { StreamPage, Streams } from './pages/streams';
import { TelemetryPage } from './pages/telemetry';
import { TopicPage } from './pages/topic/topic';
import { Topics } from './pages/topics';
import { Transactions } from './pages/transactions';
import { PageHead } from './parts/controls';
import { DialogPlace } from './parts/dialog';
import { Empty, Notices, ProblemNote } from './parts/feedback';
import { Help } from './parts/help';
import { Palette } from './parts/palette';
import { Shell } from './parts/shell';

function Missing() {
  return (
    <>
      <PageHead title="No such page" />
      <Empty title={`The console has no page at ${place.value.path}`}>
        Press Ctrl K to search for a topic, a group or a broker.
      </Empty>
    </>
  );
}

function PageAt() {
  const [page = '', name, tab] = segments.value;
  switch (page) {
    case '':
      return <OverviewPage />;
    case 'topics':
      return name === undefined ? <Topics /> : <TopicPage key={name} name={name} tab={tab ?? 'messages'} />;
    case 'groups':
      return name === undefined ? <Groups /> : <GroupPage key={name} name={name} tab={tab ?? 'partitions'} />;
    case 'messages':
      return <Messages />;
    case 'brokers':
      return name === undefined ? <Brokers /> : <BrokerPage key={name} id={name} />;
    case 'heatmap':
      return <HeatMapPage />;
    case 'plans':
      return <Plans />;
    case 'transactions':
      return <Transactions />;
    case 'telemetry':
      return <TelemetryPage />;
    case 'streams':
      return name === undefined ? <Streams /> : <StreamPage key={name} name={name} />;
    case 'alerts':
      return <Alerts />;
    default:
      return <Missing />;
  }
}

/** The title of the browser's tab, from the place. */
function useTitle() {
  const [page, name] = segments.value;
  const cluster = session.value?.cluster.name;
  useEffect(() => {
    const where = name ?? (page ? page.charAt(0).toUpperCase() + page.slice(1) : 'Overview');
    document.title = [where, cluster, 'Barnabas'].filter(Boolean).join(' · ');
  }, [page, name, cluster]);
}

export function App() {
  useTitle();
  const ready = session.value !== null && !needsLogin.value;
  useEffect(() => (ready ? openEvents() : closeEvents()), [ready]);
  if (session.value === null) {
    return sessionProblem.value === null ? null : (
      <main class="alone">
        <ProblemNote text={sessionProblem.value} again={() => void loadSession()} />
      </main>
    );
  }
  if (needsLogin.value || place.value.path === '/login') return <Login />;
  return (
    <>
      <Shell>
        <PageAt />
      </Shell>
      <DialogPlace />
      {paletteOpen.value && <Palette />}
      {helpOpen.value && <Help />}
      <Notices />
    </>
  );
}
