import { useEffect } from 'preact/hooks';
import { call, passwordAgain, Refusal, signInAgain, trouble } from './api.js';
import { pathTo } from './api-paths.js';
import { Header, Menu } from './frame/frame.js';
import { Palette, isFinding } from './frame/palette.js';
import { screenAt, linkToScreen, SCREENS } from './frame/screens.js';
import { Dialog, Notes, showError, say } from './parts/basics.js';
import { PasswordAgain } from './parts/confirm.js';
import { place, goTo } from './routes.js';
import { SignIn, signInByLink, takeLink } from './screens/sign-in.js';
import { loadProjects, me, recallMe, setMe, menuProject } from './session.js';
import { isStale, watchServer, watchVersion } from './outdated-page.js';
import { isTyping } from './parts/table.js';

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

/** Ctrl-K finds, `/` goes to the search of a screen, `g` and a letter to another screen, `?` names the keys. */
function useKeys(): void {
  useEffect(() => {
    let going = false;
    const press = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key === 'k' && !document.querySelector('dialog[open]')) {
        event.preventDefault();
        isFinding.value = true;
        return;
      }
      if (isTyping(event) || document.querySelector('dialog[open]')) return;
      if (going) {
        going = false;
        const shown = menuProject.value?.id;
        const screen = SCREENS.find(({ key }) => key === event.key);
        if (screen && (!screen.ofProject || shown)) goTo(linkToScreen(screen, shown ?? ''));
      } else if (event.key === 'g') {
        going = true;
      } else if (event.key === '/') {
        event.preventDefault();
        document.querySelector<HTMLElement>('main [data-search]')?.focus();
      } else if (event.key === '?') {
        const screens = SCREENS.map(({ key, name }) => `${key} ${name}`).join(', ');
        say(`Ctrl K finds anything · / search · j k rows · Enter opens · g and ${screens}`);
      }
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}
