import type { ComponentType } from 'preact';
import { lazy } from './parts/lazy.js';
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, signInAgain, trouble } from './api.js';
import { Dialog, Notes, say, tellRefusal } from './parts/basics.js';
import { isTyping } from './parts/table.js';
import { goTo, linkTo, place } from './routes.js';
import { Overview } from './screens/overview.js';
import { isStale, watchVersion } from './stale-page.js';
import { SignIn, useLink } from './screens/sign-in.js';
import { loadProjects, me, project, projects, seesAll, theme, utc, type Me } from './session.js';

interface Screen {
  name: string;
  /** Typed after `g`. */
  key: string;
  view: ComponentType;
}

/** Screens of the service, and of a project: shown in the menu in this order. */
const OF_SERVICE: Record<string, Screen & { forAll?: boolean }> = {
  '': { name: 'Overview', key: 'o', view: Overview },
  audit: { name: 'Audit', key: 'a', view: lazy(() => import('./screens/audit.js').then(({ Audit }) => Audit)) },
  jobs: {
    name: 'Jobs',
    key: 'j',
    forAll: true,
    view: lazy(() => import('./screens/jobs.js').then(({ Jobs }) => Jobs)),
  },
  account: {
    name: 'Account',
    key: 'y',
    view: lazy(() => import('./screens/account.js').then(({ Account }) => Account)),
  },
};
const OF_PROJECT: Record<string, Screen> = {
  documents: {
    name: 'Documents',
    key: 'd',
    view: lazy(() => import('./screens/documents.js').then(({ Documents }) => Documents)),
  },
  collections: {
    name: 'Collections',
    key: 'c',
    view: lazy(() => import('./screens/collections.js').then(({ Collections }) => Collections)),
  },
  users: { name: 'Users', key: 'u', view: lazy(() => import('./screens/users.js').then(({ Users }) => Users)) },
  webhooks: {
    name: 'Webhooks',
    key: 'w',
    view: lazy(() => import('./screens/webhooks.js').then(({ Webhooks }) => Webhooks)),
  },
  mail: { name: 'Mail', key: 'm', view: lazy(() => import('./screens/mail.js').then(({ Mail }) => Mail)) },
  files: { name: 'Files', key: 'f', view: lazy(() => import('./screens/files.js').then(({ Files }) => Files)) },
  settings: {
    name: 'Keys and project',
    key: 'k',
    view: lazy(() => import('./screens/settings.js').then(({ Settings }) => Settings)),
  },
};

export function App() {
  useEffect(() => {
    void begin();
    watchVersion();
  }, []);
  if (me.value === undefined) return <p class="empty">Loading…</p>;
  if (me.value === null) {
    return (
      <main class="alone">
        <SignIn onDone={() => void begin()} />
        <Notes />
      </main>
    );
  }
  return <Page />;
}

async function begin(): Promise<void> {
  await useLink().catch(tellRefusal);
  try {
    me.value = await api<Me>('GET', '/api/admin/me', undefined, { isSignIn: true });
    // Beside the page, never before it.
    void loadProjects().catch(tellRefusal);
  } catch {
    me.value = null;
  }
}

function Page() {
  useKeys();
  const { parts } = place.value;
  const [first = '', id = '', name = 'documents'] = parts;
  const found = first === 'p' ? OF_PROJECT[name] : OF_SERVICE[first];
  const View = found?.view;
  useEffect(() => {
    document.title = `${found?.name ?? 'Nothing here'} · bsvc console`;
  }, [found]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Header />
      <Menu current={first === 'p' ? name : first} id={id} />
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
          <View key={first === 'p' ? `${id}/${name}` : first} />
        ) : (
          <>
            <h1>Nothing here</h1>
            <p>There is nothing at this address of the console.</p>
          </>
        )}
      </main>
      <Notes />
      {signInAgain.value && (
        <Dialog title="Your session has ended" onClose={() => undefined}>
          <p>Sign in again: what you have typed is still there.</p>
          <SignIn onDone={() => signInAgain.value?.done()} isAgain />
        </Dialog>
      )}
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

const NEXT = { auto: 'light', light: 'dark', dark: 'auto' } as const;

function Header() {
  return (
    <header class="top">
      <a class="brand" href="#/">
        bsvc
      </a>
      <label>
        <span class="hidden">Project</span>
        <select
          value={project.value?.id ?? ''}
          onChange={({ currentTarget: { value } }) =>
            goTo(value === '' ? '#/' : linkTo(['p', value, place.value.parts[2] ?? 'documents']))
          }
        >
          <option value="">{projects.value.length === 0 ? 'No project' : 'Choose a project'}</option>
          {projects.value.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <span class="who">
        {me.value?.email} <b>{me.value?.role}</b>
      </span>
      <button onClick={() => (theme.value = NEXT[theme.value])}>Theme: {theme.value}</button>
      <button onClick={() => (utc.value = !utc.value)}>Times: {utc.value ? 'UTC' : 'local'}</button>
      <button onClick={() => void signOut()}>Sign out</button>
    </header>
  );
}

async function signOut(): Promise<void> {
  try {
    await api('POST', '/api/admin/logout');
    me.value = null;
  } catch (error) {
    tellRefusal(error);
  }
}

function Menu({ current, id }: { current: string; id: string }) {
  const shown = project.value?.id ?? (id || projects.value[0]?.id);
  const menu = useRef<HTMLElement>(null);
  // On a phone the menu is a line that scrolls.
  useEffect(() => {
    // By its place: scrolled into view, it would be where Tab goes on from.
    const link = menu.current?.querySelector<HTMLElement>('[aria-current]');
    if (link) menu.current!.scrollLeft = link.offsetLeft - menu.current!.offsetLeft;
  }, [current, shown]);
  return (
    <nav ref={menu} aria-label="Screens">
      <ul>
        {Object.entries(OF_SERVICE)
          .filter(([, { forAll }]) => !forAll || seesAll.value)
          .map(([path, { name }]) => (
            <li key={path}>
              <a
                href={linkTo(path === '' ? [] : [path])}
                {...(current === path && { 'aria-current': 'page' as const })}
              >
                {name}
              </a>
            </li>
          ))}
        {shown &&
          Object.entries(OF_PROJECT).map(([path, { name }]) => (
            <li key={path}>
              <a href={linkTo(['p', shown, path])} {...(current === path && { 'aria-current': 'page' as const })}>
                {name}
              </a>
            </li>
          ))}
      </ul>
    </nav>
  );
}

/** `/` goes to the search of a screen, `g` and a letter to another screen, `?` tells the keys. */
function useKeys(): void {
  const [, setGoing] = useState(false);
  useEffect(() => {
    let going = false;
    const press = (event: KeyboardEvent): void => {
      if (isTyping(event) || document.querySelector('dialog[open]')) return;
      if (going) {
        going = false;
        const shown = project.value?.id ?? projects.value[0]?.id;
        const service = Object.entries(OF_SERVICE).find(([, { key }]) => key === event.key);
        const inProject = Object.entries(OF_PROJECT).find(([, { key }]) => key === event.key);
        if (service) goTo(linkTo(service[0] === '' ? [] : [service[0]]));
        else if (inProject && shown) goTo(linkTo(['p', shown, inProject[0]]));
      } else if (event.key === 'g') going = true;
      else if (event.key === '/') {
        event.preventDefault();
        document.querySelector<HTMLElement>('main [data-search]')?.focus();
      } else if (event.key === '?') {
        const all = { ...OF_SERVICE, ...OF_PROJECT };
        say(
          `/ search · j k rows · Enter opens · g and ${Object.values(all)
            .map((each) => `${each.key} ${each.name}`)
            .join(', ')}`,
        );
      }
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [setGoing]);
}
