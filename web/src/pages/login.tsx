/** The login. Afterwards the page that was asked for comes back. */
import { useEffect, useState } from 'preact/hooks';
import { problemText } from '../api/client';
import { login, needsLogin, oidcAddress, session } from '../api/session';
import { go, place, query, queryOf } from '../lib/place';
import { Field } from '../parts/controls';
import { ProblemNote } from '../parts/feedback';

/** Only a path of the console; anything else goes to the overview. */
function nextPlace(): string {
  if (place.value.path !== '/login') return place.value.path + place.value.search;
  const next = query.value.get('next') ?? '/';
  return /^\/(?![/\\])/.test(next) && !next.startsWith('/login') ? next : '/';
}

function Password({ label }: { label: string }) {
  const [user, setUser] = useState('');
  const [password, setPassword] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await login(user, password);
      go(nextPlace(), { replace: true });
    } catch (error) {
      setProblem(problemText(error));
      setPassword('');
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={submit}>
      <Field label={label} name="username" autocomplete="username" autofocus required value={user} onInput={(event) => setUser(event.currentTarget.value)} />
      <Field label="Password" type="password" name="password" autocomplete="current-password" required value={password} onInput={(event) => setPassword(event.currentTarget.value)} />
      {problem && <ProblemNote text={problem} />}
      <button class="button primary" type="submit" disabled={busy}>
        {busy ? 'Logging in …' : 'Log in'}
      </button>
    </form>
  );
}

export function Login() {
  const methods = session.value?.login.methods ?? [];
  useEffect(() => {
    if (!needsLogin.value) go(nextPlace(), { replace: true });
  }, []);
  const byPassword = methods.includes('password') || methods.includes('broker');
  return (
    <main class="login">
      <h1>
        <b>barnabas</b>
        {session.value?.cluster.name && <span> / {session.value.cluster.name}</span>}
      </h1>
      {byPassword && <Password label={methods.includes('broker') ? 'Kafka user' : 'User'} />}
      {methods.includes('oidc') && (
        <a class="button primary" href={oidcAddress + queryOf({ to: nextPlace() })}>
          Log in with your organization
        </a>
      )}
    </main>
  );
}
