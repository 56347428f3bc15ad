import { useState } from 'preact/hooks';
import { call } from '../api.js';
import { pathTo } from '../api-paths.js';
import { countDrafts, forgetDrafts } from '../drafts.js';
import { howMany } from '../format.js';
import { tellRefusal } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { Health } from '../parts/health.js';
import { Icon } from '../parts/icon.js';
import { isFinding } from './palette.js';
import { me, seesAll, settleMe, theme, utc } from '../session.js';

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
    settleMe(null);
  } catch (error) {
    tellRefusal(error);
  }
}
