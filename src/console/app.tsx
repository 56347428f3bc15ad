import { useEffect } from 'preact/hooks';
import { call, passwordAgain, Refusal, signInAgain, trouble } from './api.js';
import { pathTo } from './api-paths.js';
import { Header, Menu } from './frame/frame.js';
import { Palette } from './frame/palette.js';
import { screenAt } from './frame/screens.js';
import { useKeys } from './frame/use-keys.js';
import { Dialog, Notes, showError } from './parts/basics.js';
import { PasswordAgain } from './parts/confirm.js';
import { place } from './routes.js';
import { SignIn, signInByLink, takeLink } from './screens/sign-in.js';
import { loadProjects, me, recallMe, setMe } from './session.js';
import { isStale, watchServer, watchVersion } from './outdated-page.js';

/** Begins before anything is drawn: the form, or a screen and its requests, wait for no answer. */
export function startConsole(): void {
  const link = takeLink();
  if (link === null) me.value = recallMe();
  // No one has signed in with this browser: a request would only log an error in the browser.
  if (me.value !== null) void begin(link);
  watchVersion();
  watchServer();
}

export function App() {
  if (me.value === undefined) return <p class="empty">Loading…</p>;
  if (me.value === null) {
    return (
      <main class="alone">
        <SignIn onDone={() => void begin(null)} />
        <Notes />
      </main>
    );
  }
  return <Page />;
}

async function begin(link: string | null): Promise<void> {
  if (link !== null) await signInByLink(link).catch(showError);
  // Beside the page, never before it.
  if (me.value) void loadProjects().catch(showError);
  try {
    const wasKnown = me.value !== null && me.value !== undefined;
    setMe(await call('GET', pathTo('/api/admin/me'), { isSignIn: true }));
    if (!wasKnown) void loadProjects().catch(showError);
    signInAgain.value?.done();
  } catch (error) {
    // A server that is away does not say that the session has ended.
    if (!me.value || (error instanceof Refusal && error.status === 401)) setMe(null);
  }
}

function Page() {
  useKeys();
  const { parts } = place.value;
  const found = screenAt(parts);
  const View = found?.view;
  useEffect(() => {
    document.title = `${found?.name ?? 'Nothing here'} · bsvc console`;
  }, [found]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Menu />
      <Header />
      <main id="main" tabIndex={-1}>
        {isStale.value && (
          <p class="banner" role="alert">
            The server is newer than this page. <button onClick={() => location.reload()}>Load the page again</button>
          </p>
        )}
        {trouble.value && (
          <p class="banner" role="alert">
            {trouble.value}
          </p>
        )}
        {View ? (
          <View key={parts.slice(0, parts[0] === 'p' ? 3 : 1).join('/')} />
        ) : (
          <>
            <h1>Page not found</h1>
            <p>This page does not exist.</p>
          </>
        )}
      </main>
      <Palette />
      <Notes />
      {passwordAgain.value && <PasswordAgain onDone={passwordAgain.value.done} />}
      {signInAgain.value && me.value?.email !== '' && (
        <Dialog title="Your session has ended" onClose={() => undefined}>
          <p>Sign in again. Your input is kept.</p>
          <SignIn onDone={() => void begin(null)} isAgain />
        </Dialog>
      )}
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}
