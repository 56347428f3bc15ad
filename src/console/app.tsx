import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, passwordAgain, Refusal, signInAgain, trouble } from './api.js';
import { Dialog, Notes, say, tellRefusal } from './parts/basics.js';
import { PasswordAgain } from './parts/confirm.js';
import { Health } from './parts/health.js';
import { isTyping } from './parts/table.js';
import { goTo, linkTo, place } from './routes.js';
import { Account } from './screens/service/account.js';
import { Audit } from './screens/service/audit.js';
import { Collections } from './collections/collections.js';
import { Documents } from './documents/documents.js';
import { Files } from './screens/project/files.js';
import { Jobs } from './screens/service/jobs.js';
import { Mail } from './screens/traffic/mail.js';
import { Overview } from './screens/service/overview.js';
import { Settings } from './screens/project/settings.js';
import { SignIn, signInByLink, takeLink } from './screens/service/sign-in.js';
import { Users } from './screens/people/users.js';
import { Webhooks } from './screens/traffic/webhooks.js';
import {
  loadProjects,
  me,
  menuProject,
  project,
  projects,
  recallMe,
  seesAll,
  settleMe,
  theme,
  utc,
  type Me,
} from './session.js';
import { isStale, watchVersion } from './stale-page.js';

interface Screen {
  name: string;
  /** Typed after `g`. */
  key: string;
  view: ComponentType;
}

/**
 * Screens of the service, and of a project: shown in the menu in this order. They are all of one script: a screen that
 * comes by itself would be waited for before it can ask for what it shows.
 */
const OF_SERVICE: Record<string, Screen & { forAll?: boolean }> = {
  '': { name: 'Overview', key: 'o', view: Overview },
  audit: { name: 'Audit', key: 'a', view: Audit },
  jobs: { name: 'Jobs', key: 'j', forAll: true, view: Jobs },
  account: { name: 'Account', key: 'y', view: Account },
};
const OF_PROJECT: Record<string, Screen> = {
  documents: { name: 'Documents', key: 'd', view: Documents },
  collections: { name: 'Collections', key: 'c', view: Collections },
  users: { name: 'Users', key: 'u', view: Users },
  webhooks: { name: 'Webhooks', key: 'w', view: Webhooks },
  mail: { name: 'Mail', key: 'm', view: Mail },
  files: { name: 'Files', key: 'f', view: Files },
  settings: { name: 'Keys and project', key: 'k', view: Settings },
};

/** Begins before anything is drawn: the form, or a screen and its requests, wait for no answer. */
export function startConsole(): void {
  const link = takeLink();
  if (link === null) me.value = recallMe();
  void begin(link);
  watchVersion();
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
  if (link !== null) await signInByLink(link).catch(tellRefusal);
  // Beside the page, never before it.
  if (me.value) void loadProjects().catch(tellRefusal);
  try {
    const wasKnown = me.value !== null && me.value !== undefined;
    settleMe(await api<Me>('GET', '/api/admin/me', undefined, { isSignIn: true }));
    if (!wasKnown) void loadProjects().catch(tellRefusal);
    signInAgain.value?.done();
  } catch (error) {
    // A server that is away does not say that the session has ended.
    if (!me.value || (error instanceof Refusal && error.status === 401)) settleMe(null);
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
      {passwordAgain.value && <PasswordAgain onDone={passwordAgain.value.done} />}
      {signInAgain.value && me.value?.email !== '' && (
        <Dialog title="Your session has ended" onClose={() => undefined}>
          <p>Sign in again: what you have typed is still there.</p>
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
      {seesAll.value && <Health />}
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
    settleMe(null);
  } catch (error) {
    tellRefusal(error);
  }
}

function Menu({ current, id }: { current: string; id: string }) {
  const shown = menuProject.value?.id ?? id;
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
        {shown && <li class="group">{menuProject.value?.name ?? 'Project'}</li>}
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
        const shown = menuProject.value?.id;
        const service = Object.entries(OF_SERVICE).find(([, { key }]) => key === event.key);
        const inProject = Object.entries(OF_PROJECT).find(([, { key }]) => key === event.key);
        if (service) goTo(linkTo(service[0] === '' ? [] : [service[0]]));
        else if (inProject && shown) goTo(linkTo(['p', shown, inProject[0]]));
      } else if (event.key === 'g') {
        going = true;
      } else if (event.key === '/') {
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
