import { useState, useEffect, useRef } from 'preact/hooks';
import { pathTo } from '../api-paths.js';
import { call } from '../api.js';
import { countDrafts, forgetDrafts } from '../drafts.js';
import { howMany } from '../format.js';
import { useLoad } from '../load.js';
import { showError } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { NameChoice } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { goTo, linkTo, place } from '../routes.js';
import { me, seesAll, setMe, theme, utc, menuProject, problems, project, projects } from '../session.js';
import { isFinding } from './palette.js';
import { GROUPS, linkToScreen, screenAt } from './screens.js';

const NEXT = { auto: 'light', light: 'dark', dark: 'auto' } as const;

/** One line above every screen. */
export function Header() {
  const [isAsking, setAsking] = useState(false);
  return (
    <header class="top">
      <button class="menu-button quiet icon" popovertarget="menu" aria-label="Menu">
        <Icon name="menu" />
      </button>
      <button class="find" onClick={() => (isFinding.value = true)}>
        <Icon name="search" />
        <span>Find…</span>
        <kbd>Ctrl K</kbd>
      </button>
      <span class="end" />
      {seesAll.value && <Health />}
      <button class="quiet" popovertarget="account-menu">
        <Icon name="account" />
        <span class="who">{me.value?.email || 'Account'}</span>
        <Icon name="down" />
      </button>
      <div class="pop" id="account-menu" popover="auto">
        <p>Signed in as {me.value?.role}</p>
        <a href="#/account">Account</a>
        <button onClick={() => (theme.value = NEXT[theme.value])}>Theme: {theme.value}</button>
        <button onClick={() => (utc.value = !utc.value)}>Times: {utc.value ? 'UTC' : 'local'}</button>
        <button onClick={() => (countDrafts() > 0 ? setAsking(true) : void signOut())}>Sign out</button>
      </div>
      {isAsking && (
        <Confirm
          title="Sign out"
          text={`${howMany(countDrafts(), 'draft')} that you have typed in this browser will be discarded.`}
          action="Sign out and discard"
          onClose={() => setAsking(false)}
          request={signOut}
        />
      )}
    </header>
  );
}

async function signOut(): Promise<void> {
  try {
    await call('POST', pathTo('/api/admin/logout'));
    // The next user of this browser reads none.
    forgetDrafts();
    setMe(null);
  } catch (error) {
    showError(error);
  }
}

/** Screens by group. On a phone it is a sheet that the header opens. */
export function Menu() {
  const { parts } = place.value;
  const current = screenAt(parts);
  const shown = menuProject.value?.id ?? (parts[0] === 'p' ? parts[1] : undefined);
  const sheet = useRef<HTMLElement>(null);
  useEffect(() => {
    if (sheet.current?.matches(':popover-open')) sheet.current.hidePopover();
  }, [place.value]);
  return (
    <nav ref={sheet} id="menu" aria-label="Screens" popover="auto">
      <a class="brand" href="#/">
        bsvc
      </a>
      <ProjectChoice />
      {GROUPS.map(({ name, screens }) => {
        const listed = screens.filter(
          ({ ofProject, forAll }) => (!ofProject || shown !== undefined) && (!forAll || seesAll.value),
        );
        if (listed.length === 0) return null;
        return (
          <section key={name}>
            {name !== '' && <h2>{name}</h2>}
            <ul>
              {listed.map((screen) => (
                <li key={screen.path}>
                  <a
                    href={linkToScreen(screen, shown ?? '')}
                    {...(current === screen && { 'aria-current': 'page' as const })}
                  >
                    <Icon name={screen.icon} />
                    {screen.name}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </nav>
  );
}

function ProjectChoice() {
  const chosen = project.value ?? menuProject.value;
  return (
    <NameChoice
      label="Project"
      value={chosen?.id}
      names={projects.value.map(({ id, name }) => [id, name])}
      unchosen="No project"
      onChange={(value) => {
        const { parts } = place.value;
        goTo(linkTo(['p', value, parts[0] === 'p' ? (parts[2] ?? 'documents') : 'documents']));
      }}
    />
  );
}

const OLD_MS = 30_000;

/**
 * Names problems on every screen. The overview asks for them by itself; elsewhere they are asked for on the way from
 * screen to screen, never by a timer: unused sessions must expire.
 */
function Health() {
  const { parts, query } = place.value;
  const isOverview = parts.length === 0;
  const { data, reload } = useLoad(isOverview ? null : pathTo('/api/admin/status'));
  const askedAt = useRef(performance.now());
  useEffect(() => {
    if (data) problems.value = data.problems;
  }, [data]);
  useEffect(() => {
    if (performance.now() - askedAt.current < OLD_MS) return;
    askedAt.current = performance.now();
    reload();
  }, [parts, query]);
  if (problems.value === null) return null;
  const { length } = problems.value;
  return (
    <a href="#/" class={length > 0 ? 'state bad' : 'state good'}>
      {length === 0 ? 'healthy' : `${length} ${length === 1 ? 'problem' : 'problems'}`}
    </a>
  );
}
