import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt, Copy, say, Trouble } from '../../parts/basics.js';
import { type CommandLine, CommandList, ofProject, quote } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { Drawer } from '../../parts/drawer.js';
import { mayChange } from '../../session.js';
import { EditUser } from './edit-user.js';
import { SetPassword } from './set-password.js';
import { ownFields, type User } from './user.js';
import { UserSessions, UserIdentities } from './user-sessions.js';

type Question = 'password' | 'delete' | 'factors';

/** One user: what is kept of them, and all that an operator does with an account. */
export function UserDrawer({
  base,
  id,
  onClose,
  onChange,
}: {
  base: Address<'/api/projects/{projectId}/users'>;
  id: string;
  onClose: () => void;
  onChange: () => void;
}) {
  const path = below(base, '/{user}', { user: id });
  const { data, error, reload } = useLoad(path);
  const [asked, ask] = useState<Question | null>(null);
  const [isDirty, setDirty] = useState(false);
  const [turn, setTurn] = useState(0);
  const renew = (): void => [reload, onChange, () => setTurn(turn + 1)].forEach((each) => each());
  const onGone = (): void => {
    onChange();
    onClose();
  };
  const run = (request: () => Promise<User>, text: string): Promise<void> =>
    attempt(async () => {
      await request();
      ask(null);
      renew();
      return text;
    });
  return (
    <Drawer title={data?.email ?? 'User'} isDirty={isDirty} onClose={onClose}>
      <Trouble error={error} onRetry={reload} />
      {data && (
        <>
          <Facts user={data} />
          {mayChange.value ? (
            <EditUser key={data.updatedAt} path={path} stored={data} onDirty={setDirty} onSaved={renew} />
          ) : (
            <Kept user={data} />
          )}
          {mayChange.value && (
            <p class="row">
              <button
                onClick={() =>
                  void (data.disabled
                    ? run(() => call('POST', below(path, '/enable')), 'The account works again')
                    : run(() => call('POST', below(path, '/disable')), 'The account is disabled'))
                }
              >
                {data.disabled ? 'Enable' : 'Disable'}
              </button>
              <button onClick={() => ask('password')}>Set the password…</button>
              {!data.mfa?.resetAt && <button onClick={() => ask('factors')}>Reset the second factor…</button>}
              <button class="danger" onClick={() => ask('delete')}>
                Delete…
              </button>
            </p>
          )}
          <UserSessions key={turn} path={path} />
          <UserIdentities path={path} />
          <CommandList lines={() => commandsOf(path, data)} />
          {asked && (
            <Asked
              what={asked}
              path={path}
              user={data}
              onClose={() => ask(null)}
              onReset={() =>
                run(() => call('DELETE', below(path, '/mfa')), 'The reset is noted; the user is told by mail')
              }
              onPassword={renew}
              onDeleted={onGone}
            />
          )}
        </>
      )}
    </Drawer>
  );
}

function Asked({
  what,
  path,
  user,
  onClose,
  onReset,
  onPassword,
  onDeleted,
}: {
  what: Question;
  path: Address<'/api/projects/{projectId}/users/{user}'>;
  user: User;
  onClose: () => void;
  onReset: () => Promise<void>;
  onPassword: () => void;
  onDeleted: () => void;
}) {
  if (what === 'password') return <SetPassword path={path} onClose={onClose} onDone={onPassword} />;
  if (what === 'factors') {
    return (
      <Confirm
        title="Reset the second factor"
        text="After the project’s delay the account has none, and its sessions end. The user is told by mail; signing in with a code stops it."
        action="Reset the second factor"
        onClose={onClose}
        onConfirm={onReset}
      />
    );
  }
  return (
    <Confirm
      title="Delete the account"
      text="For good. The user’s documents stay, except where a field says otherwise (onDelete)."
      name={user.email ?? user._id}
      action="Delete the account"
      onClose={onClose}
      onConfirm={async () => {
        await call('DELETE', path);
        say('The account is deleted');
        onDeleted();
      }}
    />
  );
}

function Facts({ user }: { user: User }) {
  return (
    <dl class="pairs">
      <dt>Id</dt>
      <dd>
        <code>{user._id}</code> <Copy text={user._id} what="Id" />
      </dd>
      <dt>State</dt>
      <dd>{user.disabled ? <span class="tag bad">disabled</span> : <span class="tag good">active</span>}</dd>
      <dt>Signs in with</dt>
      <dd>
        {user.hasPassword ? 'a password' : 'no password'}
        {user.mfa?.since && `, and a second factor since ${moment(user.mfa.since)}`}
        {user.mfa?.resetAt && `; second factors and passkeys end ${moment(user.mfa.resetAt)}`}
      </dd>
      <dt>Created</dt>
      <dd>{moment(user.createdAt)}</dd>
      <dt>Changed</dt>
      <dd>{moment(user.updatedAt)}</dd>
    </dl>
  );
}

/** For those who may not change it. */
function Kept({ user }: { user: User }) {
  return (
    <dl class="pairs">
      <dt>Address</dt>
      <dd>{user.emailVerified ? 'confirmed' : 'not confirmed'}</dd>
      <dt>Roles</dt>
      <dd>{user.roles?.join(', ') || 'none'}</dd>
      {Object.entries(ownFields(user)).map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
        </>
      ))}
    </dl>
  );
}

function commandsOf(
  path: Address<'/api/projects/{projectId}/users/{user}'>,
  { _id, email, disabled }: User,
): CommandLine[] {
  const cli = (words: string, more = ''): string => `bsvc user ${words} ${quote(email ?? _id)} ${ofProject()}${more}`;
  const sessions = below(path, '/sessions');
  if (!mayChange.value) return [{ cli: cli('sessions'), path: sessions }];
  const switched = disabled ? 'enable' : 'disable';
  return [
    { name: disabled ? 'Enable' : 'Disable', cli: cli(switched), method: 'POST', path: below(path, `/${switched}`) },
    {
      name: 'Roles',
      cli: cli('roles', ' --none --add editor'),
      method: 'PUT',
      path: below(path, '/roles'),
      body: { roles: ['editor'] },
    },
    {
      name: 'Set the password',
      cli: cli('set-password'),
      method: 'POST',
      path: below(path, '/set-password'),
      body: { password: '…' },
    },
    { name: 'Second factor', cli: cli('mfa', ' --reset'), method: 'DELETE', path: below(path, '/mfa') },
    { name: 'End all sessions', cli: cli('sessions', ' --revoke all'), method: 'DELETE', path: sessions },
    { name: 'Delete', cli: cli('delete'), method: 'DELETE', path },
  ];
}
